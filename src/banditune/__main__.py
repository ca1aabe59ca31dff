"""`banditune` and `python -m banditune`."""


def main() -> None:
    """Run the command line; Ctrl-C while it is loading ends it as later."""
    try:
        from banditune import cli

        cli.main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
