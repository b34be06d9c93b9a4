"""A service on a socket of loopback, in threads of this process."""

import threading
from contextlib import contextmanager


@contextmanager
def running(predictor, limits=None, window: float = 0.005, most_seconds: float = 300.0):
    """Serve a predictor as "served/both"; yields its address."""
    import uvicorn
    from mmgen_serve.app import Service, application
    from mmgen_serve.limits import Limits
    from mmgen_serve.server import listen

    listening, service = listen("127.0.0.1", 0), Service(predictor, "served/both", limits or Limits(), window)
    server = uvicorn.Server(uvicorn.Config(application(service), log_config=None, access_log=False, lifespan="off"))
    service.engine.start()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(most_seconds)
        service.engine.stop(most_seconds)
        listening.close()
