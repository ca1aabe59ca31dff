"""What can be computed rather than simulated: indices, optimal values, exact regrets, and bounds for any policy."""
