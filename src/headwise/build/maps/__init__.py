"""What is known of a task's maps, and ReLU networks for them."""
