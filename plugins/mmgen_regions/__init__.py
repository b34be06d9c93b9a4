"""mmgen_regions"""
