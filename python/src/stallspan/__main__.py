"""`python -m stallspan` says whether windows of this user reach a Stallspan."""

from __future__ import annotations

import sys

from ._client import Refused, client, paths


def main() -> int:
    """Print one line, and return the exit code: 1 without a server."""
    where = " or ".join(paths())
    call = client.get("/v1/status")
    try:
        status = call.wait(5.0) if call is not None else None
    except (Refused, OSError, ValueError) as err:
        print("%s: %s" % (where, err), file=sys.stderr)
        return 1
    if status is None:
        print("no Stallspan answers at %s: start stallspan agent, or the program with stallspan run" % where,
              file=sys.stderr)
        return 1
    print("Stallspan %s answers at %s" % (status.get("version"), where))
    return 0


if __name__ == "__main__":
    sys.exit(main())
