"""How many heads does a task need?"""
