"""Which attention, which sequence model: what does a head buy in each?"""
