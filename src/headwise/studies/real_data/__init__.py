"""The head-count paper's experiments on real data, and the control: heads or width?"""
