"""TODO logs.io"""
