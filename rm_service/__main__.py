"""`python -m rm_service` is `rm-service`."""

from rm_service.cli import main

if __name__ == "__main__":
    main()
