"""`python -m mpdoctor`."""

from mpdoctor.cli import main

if __name__ == "__main__":
    main()
