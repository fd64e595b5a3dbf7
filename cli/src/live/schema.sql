-- Everything that was said about facts, in order. Rows are never changed: the log is the history, and what holds now
-- follows from it.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('add', 'remove', 'accept', 'reject', 'unsure', 'undo')),
    subject TEXT NOT NULL,
    relation TEXT NOT NULL,
    object TEXT NOT NULL,
    confidence REAL,
    source TEXT,
    note TEXT,
    who TEXT NOT NULL,
    time_ms INTEGER NOT NULL
) STRICT;

-- Requests with an idempotency key, and what was answered.
CREATE TABLE requests (
    who TEXT NOT NULL,
    key TEXT NOT NULL,
    sum TEXT NOT NULL,
    reply TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    PRIMARY KEY (who, key)
) STRICT, WITHOUT ROWID;
