"""`wotd serve`: serve tables at which people and agents play in the browser."""

from __future__ import annotations

import contextlib
import errno
import re
import signal
import socket
from pathlib import Path

import typer

from wotd_env.cli.common import explained, ready_policies
from wotd_env.cli.options import TRUST, option
from wotd_env.extras import needed_for

_HOST = r"[\w-]+(\.[\w-]+)*"


@explained()
def command(
    host: str = option("127.0.0.1", "Address to listen on; 0.0.0.0 serves the whole network."),
    port: int = option(8000, "Port; 0 takes a free one."),
    file: Path | None = option(
        None, "File that stores the tables and games.", shown="in the user's data folder"
    ),
    policy: list[str] | None = option(None, "Add an agent as NAME=POLICY, such as mine=onnx:model.onnx."),
    name: list[str] | None = option(None, "Allow this host name, besides IP addresses and localhost."),
    trust: bool = TRUST,
) -> None:
    """Start a web server with tables, at which people and agents play.

    All games are stored, and continue when the server is started again.
    """
    with needed_for("wotd serve", "web"):
        import uvicorn
        from platformdirs import user_data_path

        from wotd_env.web.app import make_app
        from wotd_env.web.connections import config_of, set_up_log
    from wotd_env.web.limits import Limits, ip_of
    from wotd_env.web.store import Store

    file = file or user_data_path("wotd-env", ensure_exists=True) / "tables.sqlite"
    named: dict[str, str] = {}
    for text in policy or ():
        agent, _, spec = text.partition("=")
        if not spec or not agent.isidentifier() or len(agent) > 24:
            raise ValueError(f"--policy must be NAME=POLICY, with a name of letters and digits, got {text!r}")
        if agent in named:
            both = f"{named[agent]!r} and to {spec!r}"
            raise ValueError(f"--policy gives {agent!r} to {both}; use each name once")
        named[agent] = spec
    for each in name or ():
        if not re.fullmatch(_HOST, each, re.ASCII):
            wanted = "a host name without scheme and port, such as play.example.org"
            raise ValueError(f"--name must be {wanted}, got {each!r}")
    made = ready_policies(list(named.values()), trust)
    limits = Limits()
    listening = _listen(host, port)
    # uvicorn repeats a signal after its shutdown. As KeyboardInterrupt, SIGTERM lets this function close the file.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    store = Store(file)
    others = addresses_for_others(host, listening.getsockname()[1])
    agents = {agent: made[spec] for agent, spec in named.items()}
    app = make_app(store, agents, limits, name or (), next(iter(others), None))
    shown = "localhost" if host in ("", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}/"
    typer.echo(f"Way of the Dragon is at {url}, tables are stored in {file}. Ctrl-C stops it.")
    if others:
        typer.echo(f"Others reach it at {', '.join(others)}.")
    ip = ip_of(host)
    if not (ip.is_loopback if ip else host == "localhost"):
        typer.echo(
            "Everybody who reaches this address can play here. The server has no encryption and no accounts: "
            "on the open internet, put a proxy with TLS in front of it."
        )
    set_up_log()
    # With --name, a proxy on this machine is expected.
    server = uvicorn.Server(config_of(app, limits, proxy_headers=bool(name)))
    try:
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    finally:
        store.close()
    typer.echo("Stopped. All games continue when it is started again.")


def addresses_for_others(host: str, port: int) -> list[str]:
    """Return the addresses of this machine's page in its network if the server listens on all of them, best first."""
    if host not in ("", "0.0.0.0", "::"):
        return []
    found = []
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; selects the address of the route to other networks
        found.append(probe.getsockname()[0])
    with contextlib.suppress(OSError):
        found += [at[4][0] for at in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)]
    return [f"http://{ip}:{port}/" for ip in dict.fromkeys(found) if not ip.startswith("127.")]


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only on sockets that are created with an explicit protocol.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(512)
    except OSError as error:
        cure = "; --port 0 takes a free port" if error.errno == errno.EADDRINUSE else ""
        raise OSError(f"cannot listen at {host}, port {port}: {error.strerror or error}{cure}") from None
    except OverflowError:
        raise ValueError(f"port must be from 0 to 65535, got {port}") from None
    return listening
