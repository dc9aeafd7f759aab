"""django-oauth-toolkit as a program: an authorization server at 127.0.0.1, where "ada" has the password "enchantress".

    python django_authority.py PORT FOLDER

It registers any client (RFC 7591), requires PKCE, rotates refresh tokens, and has metadata, revocation, introspection
and device codes. Prints a token for introspection once it listens.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIServer, make_server

import django
from django.conf import settings
from django.http import HttpRequest, JsonResponse

LOGIN = "<form method=post>{% csrf_token %}{{ form }}<button>Log in</button></form>"
TOKEN = "introspecting"

urlpatterns: list[Any] = []


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


def configure(origin: str, folder: Path) -> None:
    apps = ["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "oauth2_provider"]
    settings.configure(
        SECRET_KEY="not-a-secret",
        ALLOWED_HOSTS=["127.0.0.1"],
        USE_TZ=True,
        ROOT_URLCONF=__name__,
        INSTALLED_APPS=apps,
        MIGRATION_MODULES={app.rpartition(".")[2]: None for app in apps},  # the tables at once
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "context_processors": ["django.template.context_processors.request"],
                    "loaders": [
                        ("django.template.loaders.locmem.Loader", {"registration/login.html": LOGIN}),
                        "django.template.loaders.app_directories.Loader",
                    ],
                },
            }
        ],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "authority.db"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],  # fast
        LOGIN_URL="/login/",
        LOGGING={
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"standard error": {"class": "logging.StreamHandler"}},
            "root": {"handlers": ["standard error"]},
        },
        OAUTH2_PROVIDER={
            "SCOPES": {"use": "Use the tools", "introspection": "Look tokens up"},
            "DEFAULT_SCOPES": ["use"],
            "DCR_ENABLED": True,
            "DCR_REGISTRATION_PERMISSION_CLASSES": ["oauth2_provider.dcr.AllowAllDCRPermission"],
            "OAUTH_DEVICE_VERIFICATION_URI": f"{origin}/device/",
            "DEVICE_FLOW_INTERVAL": 1,
            "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
        },
    )
    django.setup()


def main(port: int, folder: Path) -> None:
    origin = f"http://127.0.0.1:{port}"
    configure(origin, folder)

    from django.contrib.auth import get_user_model
    from django.contrib.auth.views import LoginView
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application
    from django.urls import include, path
    from django.utils import timezone
    from oauth2_provider.models import get_access_token_model
    from oauth2_provider.views import OAuthServerMetadataView

    def metadata(request: HttpRequest) -> JsonResponse:
        """With the place for device codes, which the toolkit leaves to whoever runs it."""
        data = json.loads(OAuthServerMetadataView.as_view()(request).content)
        return JsonResponse({**data, "device_authorization_endpoint": f"{origin}/device-authorization/"})

    urlpatterns[:] = [
        path("login/", LoginView.as_view()),
        path(".well-known/oauth-authorization-server", metadata),
        path("", include("oauth2_provider.urls")),
    ]
    call_command("migrate", run_syncdb=True, verbosity=0)
    ada = get_user_model().objects.create_user("ada", password="enchantress")
    expires = timezone.now() + timedelta(days=1)
    get_access_token_model().objects.create(user=ada, token=TOKEN, scope="introspection", expires=expires)
    with make_server("127.0.0.1", port, get_wsgi_application(), Server) as server:
        sys.stdout.write(f"{TOKEN}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
