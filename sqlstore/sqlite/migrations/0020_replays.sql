-- Replays: who reprocesses which messages of a consumer and why, who runs it until when, and
-- how far it has come.
create table {prefix}replays (
  number integer primary key autoincrement,
  consumer blob not null,
  generation integer not null,
  kind text not null,
  effects integer not null,
  started_by text not null,
  started_why text not null,
  started_at integer not null,
  state text not null,
  stopped_by text not null,
  stopped_why text not null,
  stopped_at integer,
  token integer not null,
  lease_until integer not null,
  progress text not null,
  saved_at integer not null,
  ended_at integer
);

-- One of a consumer and generation at a time has not ended.
create unique index {prefix}replays_open on {prefix}replays (consumer, generation) where ended_at is null;
