"""The database's schema and its forward migrations.

`application_id` marks the file as ours, `user_version` is the number of applied migrations. A migration is never edited
once released; new ones are appended.
"""

from __future__ import annotations

APPLICATION_ID = 0x63747831  # "ctx1"

_V1 = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL DEFAULT '',
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    rolling INTEGER NOT NULL DEFAULT 0,
    draft TEXT NOT NULL DEFAULT '',
    parent TEXT,
    deleted_at REAL
);
CREATE INDEX sessions_by_time ON sessions (updated_at DESC);

CREATE TABLE messages (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at REAL NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    parts TEXT NOT NULL,
    usage TEXT,
    finish_reason TEXT,
    error TEXT,
    owner TEXT,
    PRIMARY KEY (session, id)
) WITHOUT ROWID;
CREATE INDEX messages_by_session ON messages (session);  -- counting them does not read their bodies
CREATE INDEX streaming_messages ON messages (owner) WHERE status = 'streaming';
CREATE TRIGGER messages_are_append_only BEFORE UPDATE ON messages WHEN OLD.status <> 'streaming'
BEGIN SELECT RAISE(ABORT, 'a finished message is never changed'); END;

CREATE TABLE deltas (
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    seq INTEGER NOT NULL,
    events TEXT NOT NULL,
    PRIMARY KEY (session, message, seq),
    FOREIGN KEY (session, message) REFERENCES messages (session, id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE records (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session, id)
) WITHOUT ROWID;
CREATE TRIGGER records_are_append_only BEFORE UPDATE ON records
BEGIN SELECT RAISE(ABORT, 'a record is never changed'); END;

CREATE TABLE calls (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    message TEXT,
    kind TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    at REAL NOT NULL,
    status TEXT NOT NULL,
    predicted INTEGER,
    upper_bound INTEGER,
    source TEXT,
    known INTEGER,
    estimated INTEGER,
    input_total INTEGER,
    input_cached INTEGER,
    input_cache_write INTEGER,
    output_total INTEGER,
    reasoning INTEGER,
    usage_source TEXT,
    first_token_seconds REAL,
    seconds REAL,
    finish_reason TEXT,
    error TEXT,
    cost REAL
);
CREATE INDEX calls_by_session ON calls (session, at);
CREATE INDEX calls_by_time ON calls (at);

CREATE TABLE measurements (
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    sent BLOB NOT NULL,
    preamble BLOB NOT NULL,
    at REAL NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (provider, model, sent, preamble)
) WITHOUT ROWID;

CREATE TABLE calibrations (
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (provider, model)
) WITHOUT ROWID;

CREATE TABLE counts (
    tokenizer TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest BLOB NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (tokenizer, version, digest)
);

CREATE TABLE state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE prompts (
    id TEXT PRIMARY KEY,
    text TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY,
    data BLOB NOT NULL
);
"""

_V2 = """
ALTER TABLE calls ADD COLUMN passes_input INTEGER;
ALTER TABLE calls ADD COLUMN passes_cached INTEGER;
ALTER TABLE calls ADD COLUMN passes_output INTEGER;
"""

_V3 = """
ALTER TABLE calls ADD COLUMN unpriced TEXT;
"""

_V4 = """
ALTER TABLE calls ADD COLUMN verdict TEXT;
ALTER TABLE calls ADD COLUMN verdict_reason TEXT;
ALTER TABLE calls ADD COLUMN window INTEGER;
"""

_V5 = """
ALTER TABLE calls ADD COLUMN answered_by TEXT;
ALTER TABLE calls ADD COLUMN left_out INTEGER;
"""

_V6 = """
ALTER TABLE calls ADD COLUMN day TEXT;  -- local, when the call was stored
UPDATE calls SET day = date(at, 'unixepoch', 'localtime');
CREATE TRIGGER calls_have_a_day AFTER INSERT ON calls
BEGIN UPDATE calls SET day = date(at, 'unixepoch', 'localtime') WHERE id = NEW.id; END;
-- All that adding up reads (CallLog.groups), in the order of its groups: neither the table is read, nor rows sorted.
CREATE INDEX calls_by_day ON calls (
    provider, model, answered_by, unpriced, day, status, kind, source, verdict, predicted, input_total, input_cached,
    input_cache_write, output_total, reasoning, usage_source, cost, passes_input, passes_cached, passes_output
);
"""

IMPORTS_FROM_STATE = """
INSERT OR IGNORE INTO imports (session, digest)
SELECT entry.key, json_extract(entry.value, '$[1]')
FROM state, json_each(CASE WHEN json_valid(state.value) THEN state.value ELSE '{}' END) AS entry
WHERE state.key = 'imported' AND entry.key IN (SELECT id FROM sessions) ORDER BY entry.id;
UPDATE imports SET unmeasured = (
    SELECT entry.value FROM state, json_each(CASE WHEN json_valid(state.value) THEN state.value ELSE '{}' END) AS entry
    WHERE state.key = 'unmeasured' AND entry.key = session
) WHERE EXISTS (SELECT 1 FROM state WHERE key = 'unmeasured');
INSERT OR IGNORE INTO imported_files (path, size, changed)
SELECT entry.key, json_extract(entry.value, '$[0]'), json_extract(entry.value, '$[1]')
FROM state, json_each(CASE WHEN json_valid(state.value) THEN state.value ELSE '{}' END) AS entry
WHERE state.key = 'imported_files';
DELETE FROM state WHERE key IN ('imported', 'unmeasured', 'imported_files');
"""
"""Version 6 had three JSON objects, which every import wrote anew."""

_V7 = f"""
CREATE TABLE imports (
    session TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,  -- of the messages in the file (interchange/importing.py)
    unmeasured TEXT  -- until the session is first opened (interchange/replay.py)
);
CREATE INDEX imports_by_digest ON imports (digest);
CREATE TABLE imported_files (
    path TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    changed REAL NOT NULL
) WITHOUT ROWID;
{IMPORTS_FROM_STATE}"""

LEARNED_BEFORE_8 = """
INSERT INTO state (key, value)
SELECT 'window:' || substr(key, 7), json_object('asked', json(value))
FROM state WHERE key GLOB 'asked:*' AND CASE WHEN json_valid(value) THEN json_type(value) = 'object' END
ON CONFLICT (key) DO UPDATE SET value = json_insert(value, '$.asked', json_extract(excluded.value, '$.asked'))
WHERE json_valid(value);
INSERT INTO state (key, value)
SELECT 'window:' || substr(key, 7), json_object('tools', json(value))
FROM state WHERE key GLOB 'tools:*' AND value IN ('true', 'false')
ON CONFLICT (key) DO UPDATE SET value = json_insert(
    value, '$.tools', json(CASE json_extract(excluded.value, '$.tools') WHEN 1 THEN 'true' ELSE 'false' END)
) WHERE json_valid(value);
DELETE FROM state WHERE key GLOB 'asked:*' OR key GLOB 'tools:*' OR key GLOB 'usage:*';
UPDATE calibrations SET data = json_object(
    'observations', json_extract(data, '$.observations'),
    'errors', json_array(
        json_extract(data, '$.call_errors'), json_extract(data, '$.relative'), json_extract(data, '$.calls')
    ),
    'first_errors', json_array(
        json_extract(data, '$.first.call_errors'), json_extract(data, '$.first.relative'),
        json_extract(data, '$.first.calls')
    ),
    'preambles', json_extract(data, '$.preambles'),
    'media', json_extract(data, '$.media'),
    'returned', json_extract(data, '$.returned'),
    'unseen', json_extract(data, '$.unseen'),
    'excesses', json_extract(data, '$.excesses'),
    'floor', json_extract(data, '$.floor')
) WHERE CASE WHEN json_valid(data) THEN json_type(data, '$.call_errors') = 'array' END;
"""
"""Version 7 had what a server says of a model in three objects, a number for each session, and errors by name."""

MIGRATIONS: tuple[str, ...] = (_V1, _V2, _V3, _V4, _V5, _V6, _V7, LEARNED_BEFORE_8)
