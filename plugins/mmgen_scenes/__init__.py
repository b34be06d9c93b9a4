"""mmgen_scenes"""
