"""What does a model see?"""
