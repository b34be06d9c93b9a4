"""mmgen_encoders"""
