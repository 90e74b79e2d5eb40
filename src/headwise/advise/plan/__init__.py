"""Which heads and dimensions in which layer?"""
