"""mmgen_masked"""
