"""A service on a socket of loopback, in threads of this process."""

import threading
from contextlib import contextmanager


@contextmanager
def running(predictor):
    """Serve a predictor as "served/both"; yields its address."""
    import uvicorn
    from mmgen_serve.app import Service, create_app
    from mmgen_serve.command import listen

    listening, app = listen("127.0.0.1", 0), create_app(Service(predictor), "served/both")
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(300)
        listening.close()
