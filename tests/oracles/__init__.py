"""What runs are compared with, and no command needs."""
