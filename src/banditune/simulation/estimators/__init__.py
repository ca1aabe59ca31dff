"""TODO simulation.estimators"""
