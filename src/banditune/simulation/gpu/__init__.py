"""TODO simulation.gpu"""
