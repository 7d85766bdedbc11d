"""Which documents are there?"""
