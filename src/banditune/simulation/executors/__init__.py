"""TODO simulation.executors"""
