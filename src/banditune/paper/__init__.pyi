from banditune.paper.reproduction import reproduce as reproduce
