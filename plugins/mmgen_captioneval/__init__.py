"""mmgen_captioneval"""
