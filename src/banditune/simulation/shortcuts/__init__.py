"""TODO simulation.shortcuts"""
