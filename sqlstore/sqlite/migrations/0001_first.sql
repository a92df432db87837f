-- Times are in milliseconds since 1970 unless a comment says otherwise.

-- Scopes: the number that stands for (consumer, source, generation) in every other table.
-- Markers of a scope that are older than low may have been removed, so an older message
-- without a marker may have taken effect before.
create table {prefix}scopes (
  number integer primary key autoincrement,
  consumer blob not null,
  source blob not null,
  generation integer not null,
  low integer,
  unique (consumer, source, generation)
);

-- This index finds the least and the greatest low-water mark of a consumer.
create index {prefix}scopes_low on {prefix}scopes (consumer, low);

-- Markers: what became of an identity. Outcomes: 1 applied, 2 waiting, 3 parked, 4 dead-lettered, 5 discarded.
create table {prefix}markers (
  scope integer not null,
  id blob not null,
  outcome integer not null,
  version integer not null,
  sum blob,
  long_id blob,
  at integer not null,
  primary key (scope, id)
) without rowid;

-- This index finds markers that the reaper may remove.
create index {prefix}markers_at on {prefix}markers (scope, at);

-- Results: what handlers made of messages, for those who ask again. A result is removed with
-- its marker.
create table {prefix}results (
  scope integer not null,
  id blob not null,
  result blob not null,
  primary key (scope, id)
);

-- A row in guard refers to one in guard_end, which is always empty: no transaction with an
-- open guard can commit.
create table {prefix}guard_end (
  number integer primary key
);

create table {prefix}guard (
  number integer primary key references {prefix}guard_end (number) deferrable initially deferred,
  asked integer
);

-- Inbox: messages that left the direct path.
--   consumer        the scope's consumer, by which claims find due rows without asking each scope
--   cause           the message that caused this row; emitted_at is when the row was last sent again
--   steps           the steps that have taken effect, as JSON [{"name":…,"output":…}], outputs in base64
--   stream, stream_version  the message's place in its stream
--   line, place     the order that the message keeps, and its place in it
--   calls_started, calls_finished  calls outside of any transaction that began, and whose outcome is known;
--                   called_at is when the first began, call_token the claim of the last
create table {prefix}inbox (
  number integer primary key autoincrement,
  revision integer not null,
  scope integer not null,
  consumer blob not null default x'',
  id blob not null,
  long_id blob,
  conflict blob not null,
  version integer not null,
  sum blob,
  surrogate integer not null,
  cause blob,
  state text not null,
  reason text not null,
  topic text not null,
  partition integer not null,
  "offset" integer not null,
  broker_id text not null,
  key blob,
  type text not null,
  schema text not null,
  envelope text not null,
  payload blob,
  received_at integer not null,
  changed_at integer not null,
  processed_at integer,
  emitted_at integer,
  body_removed_at integer,
  due_at integer,
  locked_until integer,
  token integer,
  started integer not null,
  finished integer not null,
  repeated integer not null,
  step text,
  steps text,
  stream blob,
  stream_version integer,
  line blob,
  place integer,
  calls_started integer not null default 0,
  calls_finished integer not null default 0,
  called_at integer,
  call_token integer,
  first_error text not null,
  last_error text not null,
  unique (scope, id, conflict)
);

create index {prefix}inbox_state on {prefix}inbox (state, due_at);

-- Rows that wait, by the moment from which they may be claimed: for a row in progress that is
-- the end of its lease, for a blocked row the end of its patience.
create index {prefix}inbox_due on {prefix}inbox (consumer, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

create index {prefix}inbox_waiting on {prefix}inbox (scope, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

-- Rows that wait for an earlier version, and rows that were parked because it did not come.
create index {prefix}inbox_blocked on {prefix}inbox (scope, stream, stream_version)
where state in ('BLOCKED', 'PARKED') and stream is not null;

-- Rows of lines that have not ended: the first row of a line is not blocked.
create index {prefix}inbox_line on {prefix}inbox (line, place)
where place is not null and state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED');

-- This index finds the outputs of a message.
create index {prefix}inbox_cause on {prefix}inbox (cause) where cause is not null;

-- This index finds bodies that the reaper may remove.
create index {prefix}inbox_bodies on {prefix}inbox (scope, changed_at)
where state in ('COMPLETED', 'DISCARDED') and body_removed_at is null;

-- Edits: a person gave a row another body; each edit keeps the body before it. An edit is
-- removed with its row, and its body with the row's body.
create table {prefix}edits (
  row integer not null references {prefix}inbox (number) on delete cascade,
  number integer not null,
  at integer not null,
  who text not null,
  body blob,
  body_sum blob not null,
  body_size integer not null,
  sum blob not null,
  size integer not null,
  primary key (row, number)
) without rowid;

-- Streams: the last version of each stream that took effect or was skipped.
create table {prefix}streams (
  scope integer not null,
  name blob not null,
  last integer not null,
  version integer not null,
  sum blob,
  changed_at integer not null,
  primary key (scope, name)
) without rowid;

-- Lines: the keys and lanes whose rows wait in the inbox, and how many places were given.
create table {prefix}lines (
  name blob primary key,
  tail integer not null
) without rowid;

-- Acts: who did what to a row, when and why. Acts are never changed and never deleted.
create table {prefix}acts (
  number integer primary key autoincrement,
  row integer not null,
  verb text not null,
  who text not null,
  why text not null,
  result text not null,
  at integer not null
);

create index {prefix}acts_row on {prefix}acts (row);

create trigger {prefix}acts_stay before update on {prefix}acts
begin
  select raise(abort, 'acts are append-only');
end;

create trigger {prefix}acts_remain before delete on {prefix}acts
begin
  select raise(abort, 'acts are append-only');
end;

-- Seals: the chain into which acts are sealed. Each line has a copy of its act and the hash of
-- the line before; seal_end has the end of the chain.
create table {prefix}seals (
  sequence integer primary key,
  act integer not null unique,
  row integer not null,
  verb text not null,
  who text not null,
  why text not null,
  result text not null,
  at integer not null,
  sealed_at integer not null,
  keyed integer not null,
  previous blob not null,
  hash blob not null
);

create table {prefix}seal_end (
  one integer primary key check (one = 1),
  sequence integer not null,
  keyed integer not null,
  hash blob not null,
  proof blob not null
);

create trigger {prefix}seals_stay before update on {prefix}seals
begin
  select raise(abort, 'seals are append-only');
end;

create trigger {prefix}seals_remain before delete on {prefix}seals
begin
  select raise(abort, 'seals are append-only');
end;

-- Positions of sources without a broker. To read a file again, delete its row.
create table {prefix}positions (
  consumer text not null,
  lane text not null,
  "offset" integer not null,
  length integer not null,
  "check" blob not null,
  at integer not null,
  primary key (consumer, lane)
) without rowid;

-- Setup: the user's statements that ran once, by their hash.
create table {prefix}setup (
  hash text primary key,
  name text not null,
  at integer not null
) without rowid;

-- Controls: what operators want of a consumer. Each of its processes reads them.
create table {prefix}controls (
  consumer blob primary key,
  paused integer not null,
  paused_by text not null,
  paused_why text not null,
  paused_at integer,
  per_second integer not null,
  limited_by text not null,
  limited_why text not null,
  limited_at integer
) without rowid;

-- Retention: how long a consumer's records are kept by its policy, and when the consumer last
-- recorded its progress.
create table {prefix}retention (
  consumer blob primary key,
  keep_ms integer not null,
  bodies_ms integer not null,
  horizon_ms integer not null,
  why text not null,
  off integer not null,
  progress_at integer not null
) without rowid;

-- Ages: the broker's time of the oldest record of a lane that is not settled or not read;
-- null if all records are settled.
create table {prefix}ages (
  consumer blob not null,
  lane text not null,
  oldest integer,
  at integer not null,
  primary key (consumer, lane)
) without rowid;

-- Derivations: the rules by which the identities of consumers are found, or were. The scopes of
-- each have its generation; former is the generation of the rule that was named as former.
create table {prefix}derivations (
  consumer blob not null,
  generation integer not null,
  derivation blob not null,
  former integer,
  retired integer not null default 0,
  first_at integer not null,
  primary key (consumer, generation),
  unique (consumer, derivation)
) without rowid;

-- Owners: what owns the name of a consumer.
create table {prefix}owners (
  consumer blob primary key,
  owner blob not null,
  changed_at integer not null
) without rowid;

-- Generation_states: the generation in which a consumer works, and until when nobody may work in
-- one.
create table {prefix}generation_states (
  consumer blob not null,
  generation integer not null,
  state integer not null,
  since integer not null,
  fenced_until integer,
  opened_at integer not null,
  opened_by text not null,
  why text not null,
  primary key (consumer, generation)
);

create unique index {prefix}generation_states_one on {prefix}generation_states (consumer, state) where state in (1, 2);

create table {prefix}generation_fences (
  consumer blob not null,
  generation integer not null,
  until integer not null,
  primary key (consumer, generation)
);

-- Replays: who reprocesses which messages of a consumer and why, who runs the replay until
-- when, and how far it has come. A consumer and generation has at most one that has not ended.
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

create unique index {prefix}replays_open on {prefix}replays (consumer, generation) where ended_at is null;

-- Keys: leased keys of calls outside of the database, who has them until when, and how the calls
-- ended. key is a hash of consumer, source and id. leased_at is when the lease was set: a lease
-- that was set while the clock was ahead ends after its own length. Times are in microseconds.
create table {prefix}keys (
  key blob primary key,
  consumer blob not null,
  source blob not null,
  id blob not null,
  ended integer not null,
  token integer not null,
  first_at integer not null,
  leased_at integer,
  locked_until integer not null,
  kept_until integer not null,
  started integer not null,
  finished integer not null,
  version integer not null,
  sum blob,
  result blob
) without rowid;

create index {prefix}keys_kept on {prefix}keys (kept_until);

-- Markers as people read them.
create view {prefix}markers_readable as
select
  cast(s.consumer as text) as consumer,
  cast(s.source as text) as source,
  s.generation,
  case substr(m.id, 1, 1)
    when x'00' then cast(substr(m.id, 2) as text)
    when x'01' then lower(hex(substr(m.id, 2, 4)) || '-' || hex(substr(m.id, 6, 2)) || '-' || hex(substr(m.id, 8, 2))
      || '-' || hex(substr(m.id, 10, 2)) || '-' || hex(substr(m.id, 12, 6)))
    else cast(m.long_id as text)
  end as id,
  case m.outcome
    when 1 then 'applied'
    when 2 then 'waiting'
    when 3 then 'parked'
    when 4 then 'dead_lettered'
    when 5 then 'discarded'
  end as outcome,
  m.version as fingerprint_version,
  lower(hex(m.sum)) as fingerprint,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.at / 1000.0, 'unixepoch') as at
from {prefix}markers m join {prefix}scopes s on s.number = m.scope;

-- The active generation of each consumer.
create view {prefix}generations as
select cast(consumer as text) as consumer, generation as active, since
from {prefix}generation_states where state = 2;
