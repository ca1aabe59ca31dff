"""TODO logs.models"""
