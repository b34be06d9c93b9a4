"""mmgen_grid"""
