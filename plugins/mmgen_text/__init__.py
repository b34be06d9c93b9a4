"""mmgen_text"""
