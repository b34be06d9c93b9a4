"""mmgen_questions"""
