-- Scopes: the number that stands for (consumer, source, generation) in every other table.
-- Markers of a scope that are older than low may have been removed, so an older message
-- without a marker may have taken effect before.
create table {prefix}scopes (
  number bigint generated always as identity primary key,
  consumer bytea not null,
  source bytea not null,
  generation bigint not null,
  low timestamptz,
  unique (consumer, source, generation)
);

-- This index finds the least and the greatest low-water mark of a consumer.
create index {name}scopes_low on {prefix}scopes (consumer, low);

-- Markers: what became of an identity. Outcomes: 1 applied, 2 waiting, 3 parked, 4 dead-lettered, 5 discarded.
-- There is no index by time: the reaper walks through the table in the order of its blocks.
create table {prefix}markers (
  scope bigint not null,
  at timestamptz not null,
  outcome smallint not null constraint known_outcomes check (outcome between 1 and 5),
  version smallint not null,
  id bytea not null,
  sum bytea,
  long_id bytea,
  primary key (scope, id)
);

-- Results: what handlers made of messages, for those who ask again. A result is removed with
-- its marker.
create table {prefix}results (
  scope bigint not null,
  id bytea not null,
  result bytea not null,
  primary key (scope, id)
);

-- A row in guard refers to one in guard_end, which is always empty: no transaction with an
-- open guard can commit.
create table {prefix}guard_end (
  number bigint primary key
);

create table {prefix}guard (
  number bigint primary key references {prefix}guard_end (number) deferrable initially deferred
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
  number bigint generated always as identity primary key,
  revision bigint not null,
  scope bigint not null,
  consumer bytea not null default '',
  id bytea not null,
  long_id bytea,
  conflict bytea not null,
  version smallint not null,
  sum bytea,
  surrogate boolean not null,
  cause bytea,
  state text not null constraint known_states check (state in ('RECEIVED', 'IN_PROGRESS', 'COMPLETED',
    'FAILED_RETRYABLE', 'FAILED_TERMINAL', 'PARKED', 'BLOCKED', 'DEAD_LETTERED', 'DISCARDED')),
  reason text not null,
  topic text not null,
  partition integer not null,
  "offset" bigint not null,
  broker_id text not null,
  key bytea,
  type text not null,
  schema text not null,
  envelope text not null,
  payload bytea,
  received_at timestamptz not null,
  changed_at timestamptz not null,
  processed_at timestamptz,
  emitted_at timestamptz,
  body_removed_at timestamptz,
  due_at timestamptz,
  locked_until timestamptz,
  token bigint,
  started bigint not null,
  finished bigint not null,
  repeated bigint not null,
  step text,
  steps text,
  stream bytea,
  stream_version bigint,
  line bytea,
  place bigint,
  calls_started bigint not null default 0,
  calls_finished bigint not null default 0,
  called_at timestamptz,
  call_token bigint,
  first_error text not null,
  last_error text not null,
  unique (scope, id, conflict)
);

create index {name}inbox_state on {prefix}inbox (state, due_at);

-- Rows that wait, by the moment from which they may be claimed: for a row in progress that is
-- the end of its lease, for a blocked row the end of its patience.
create index {name}inbox_due on {prefix}inbox (consumer, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

create index {name}inbox_waiting on {prefix}inbox (scope, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

-- Rows that wait for an earlier version, and rows that were parked because it did not come.
create index {name}inbox_blocked on {prefix}inbox (scope, stream, stream_version)
where state in ('BLOCKED', 'PARKED') and stream is not null;

-- Rows of lines that have not ended: the first row of a line is not blocked.
create index {name}inbox_line on {prefix}inbox (line, place)
where place is not null and state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED');

-- This index finds the outputs of a message.
create index {name}inbox_cause on {prefix}inbox (cause) where cause is not null;

-- This index finds bodies that the reaper may remove.
create index {name}inbox_bodies on {prefix}inbox (scope, changed_at)
where state in ('COMPLETED', 'DISCARDED') and body_removed_at is null;

-- Edits: a person gave a row another body; each edit keeps the body before it. An edit is
-- removed with its row, and its body with the row's body.
create table {prefix}edits (
  "row" bigint not null references {prefix}inbox (number) on delete cascade,
  number bigint not null,
  at timestamptz not null,
  who text not null,
  body bytea,
  body_sum bytea not null,
  body_size bigint not null,
  sum bytea not null,
  size bigint not null,
  primary key ("row", number)
);

-- Streams: the last version of each stream that took effect or was skipped.
create table {prefix}streams (
  scope bigint not null,
  name bytea not null,
  last bigint not null,
  version smallint not null,
  sum bytea,
  changed_at timestamptz not null,
  primary key (scope, name)
);

-- Lines: the keys and lanes whose rows wait in the inbox, and how many places were given.
create table {prefix}lines (
  name bytea primary key,
  tail bigint not null
);

-- Acts: who did what to a row, when and why. Acts are never changed and never deleted.
create table {prefix}acts (
  number bigint generated always as identity primary key,
  "row" bigint not null,
  verb text not null,
  who text not null,
  why text not null,
  result text not null,
  at timestamptz not null
);

create index {name}acts_row on {prefix}acts ("row");

create function {prefix}acts_refuse() returns trigger language plpgsql as $function$
begin
  raise exception 'acts are append-only';
end
$function$;

create trigger {name}acts_stay before update or delete on {prefix}acts
for each row execute function {prefix}acts_refuse();

create trigger {name}acts_remain before truncate on {prefix}acts
for each statement execute function {prefix}acts_refuse();

-- Seals: the chain into which acts are sealed. Each line has a copy of its act and the hash of
-- the line before; seal_end has the end of the chain.
create table {prefix}seals (
  sequence bigint primary key,
  act bigint not null unique,
  "row" bigint not null,
  verb text not null,
  who text not null,
  why text not null,
  result text not null,
  at timestamptz not null,
  sealed_at timestamptz not null,
  keyed boolean not null,
  previous bytea not null,
  hash bytea not null
);

create table {prefix}seal_end (
  one boolean primary key default true check (one),
  sequence bigint not null,
  keyed boolean not null,
  hash bytea not null,
  proof bytea not null
);

create function {prefix}seals_refuse() returns trigger language plpgsql as $function$
begin
  raise exception 'seals are append-only';
end
$function$;

create trigger {name}seals_stay before update or delete on {prefix}seals
for each row execute function {prefix}seals_refuse();

create trigger {name}seals_remain before truncate on {prefix}seals
for each statement execute function {prefix}seals_refuse();

-- Positions of sources without a broker. To read a file again, delete its row.
create table {prefix}positions (
  consumer text not null,
  lane text not null,
  "offset" bigint not null,
  length bigint not null,
  "check" bytea not null,
  at timestamptz not null,
  primary key (consumer, lane)
);

-- Setup: the user's statements that ran once, by their hash.
create table {prefix}setup (
  hash text primary key,
  name text not null,
  at timestamptz not null
);

-- Controls: what operators want of a consumer. Each of its processes reads them.
create table {prefix}controls (
  consumer bytea primary key,
  paused boolean not null,
  paused_by text not null,
  paused_why text not null,
  paused_at timestamptz,
  per_second bigint not null,
  limited_by text not null,
  limited_why text not null,
  limited_at timestamptz
);

-- Retention: how long a consumer's records are kept by its policy, when the consumer last
-- recorded its progress, and the reaper's walk through the table of markers: the block where
-- it continues, when the last whole walk ended, and up to where that walk removed markers.
create table {prefix}retention (
  consumer bytea primary key,
  keep_ms bigint not null,
  bodies_ms bigint not null,
  horizon_ms bigint not null,
  why text not null,
  off boolean not null,
  progress_at timestamptz not null,
  walk_block bigint not null default 0,
  walked_at timestamptz,
  walked_to timestamptz
);

-- Ages: the broker's time of the oldest record of a lane that is not settled or not read;
-- null if all records are settled.
create table {prefix}ages (
  consumer bytea not null,
  lane text not null,
  oldest timestamptz,
  at timestamptz not null,
  primary key (consumer, lane)
);

-- Dated: consumers whose markers lie in a table of their own, with a partition for each day
-- of the time that ids carry. That table keeps ids from low to before high, which are those of
-- the days from low_day to before high_day.
create table {prefix}dated (
  number bigint generated always as identity primary key,
  consumer bytea not null unique,
  kind text not null,
  low_day date not null,
  high_day date not null,
  low bytea not null,
  high bytea not null
);

-- Day_bound returns where the ids of a day begin, in the form that markers have, in UTC.
-- Snowflake ids are decimal numbers, whose texts sort by time while all have 19 digits, which
-- those of 2018-05 to 2080 have. Earlier bounds begin with zeros, below all of these.
create function {prefix}day_bound(kind text, day date) returns bytea language sql immutable as $function$
  select case kind
    when 'uuidv7' then pg_catalog.decode('01' || pg_catalog.lpad(pg_catalog.to_hex(ms), 12, '0'), 'hex')
    when 'ulid' then (
      select '\x00'::bytea || pg_catalog.decode(pg_catalog.string_agg(
        pg_catalog.substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((ms >> (5 * (9 - i))) & 31::bigint)::int + 1, 1), '' order by i), 'escape')
      from pg_catalog.generate_series(0, 9) i)
    when 'snowflake' then '\x00'::bytea || pg_catalog.decode(pg_catalog.lpad(greatest((ms - 1288834974657) << 22, 0)::text, 19, '0'), 'escape')
  end
  from (select (day - date '1970-01-01')::bigint * 86400000 as ms) since
$function$;

-- Derivations: the rules by which the identities of consumers are found, or were. The scopes of
-- each have its generation; former is the generation of the rule that was named as former.
create table {prefix}derivations (
  consumer bytea not null,
  generation bigint not null,
  derivation bytea not null,
  former bigint,
  retired boolean not null default false,
  first_at timestamptz not null,
  primary key (consumer, generation),
  unique (consumer, derivation)
);

-- Owners: what owns the name of a consumer.
create table {prefix}owners (
  consumer bytea primary key,
  owner bytea not null,
  changed_at timestamptz not null
);

-- Generation_states: the generation in which a consumer works. A fence is a row of its own, so
-- that nobody begins while a switch waits for those that hold the state's row.
create table {prefix}generation_states (
  consumer bytea not null,
  generation bigint not null,
  state smallint not null,
  since timestamptz not null,
  fenced_until timestamptz,
  opened_at timestamptz not null,
  opened_by text not null,
  why text not null,
  primary key (consumer, generation)
);

create unique index {name}generation_states_one on {prefix}generation_states (consumer, state) where state in (1, 2);

create table {prefix}generation_fences (
  consumer bytea not null,
  generation bigint not null,
  until timestamptz not null,
  primary key (consumer, generation)
);

-- Replays: who reprocesses which messages of a consumer and why, who runs the replay until
-- when, and how far it has come. A consumer and generation has at most one that has not ended.
create table {prefix}replays (
  number bigint generated by default as identity primary key,
  consumer bytea not null,
  generation bigint not null,
  kind text not null,
  effects boolean not null,
  started_by text not null,
  started_why text not null,
  started_at timestamptz not null,
  state text not null,
  stopped_by text not null,
  stopped_why text not null,
  stopped_at timestamptz,
  token bigint not null,
  lease_until timestamptz not null,
  progress text not null,
  saved_at timestamptz not null,
  ended_at timestamptz
);

create unique index {name}replays_open on {prefix}replays (consumer, generation) where ended_at is null;

-- Keys: leased keys of calls outside of the database, who has them until when, and how the calls
-- ended. key is a hash of consumer, source and id, which are too long for an index. leased_at is
-- when the lease was set: a lease that was set while the clock was ahead ends after its own length.
create table {prefix}keys (
  key bytea primary key,
  consumer bytea not null,
  source bytea not null,
  id bytea not null,
  ended smallint not null,
  token bigint not null,
  first_at timestamptz not null,
  leased_at timestamptz,
  locked_until timestamptz not null,
  kept_until timestamptz not null,
  started bigint not null,
  finished bigint not null,
  version smallint not null,
  sum bytea,
  result bytea
);

create index on {prefix}keys (kept_until);

-- Expect raises an error with a code of Semel's if a statement did not change exactly one row,
-- so that a driver that sends statements together need not wait for each.
create function {prefix}expect(changed bigint) returns bigint language plpgsql as $function$
begin
  if changed <> 1 then
    raise exception using errcode = 'SM001', message = pg_catalog.concat('changed ', changed, ' rows, not 1');
  end if;
  return changed;
end
$function$;

-- Stand raises an error with a code of Semel's if a transaction ends claims that another process
-- has taken, so that a COMMIT that was sent with it fails.
create function {prefix}stand(stood bigint, wanted bigint) returns bigint language plpgsql as $function$
begin
  if stood <> wanted then
    raise exception using errcode = 'SM002', message = pg_catalog.concat(stood, ' of ', wanted, ' claims stand');
  end if;
  return stood;
end
$function$;

-- Readable returns bytes as people read them: as text, and with escapes if they are no text.
create function {prefix}readable(bytes bytea) returns text language plpgsql immutable as $function$
begin
  return pg_catalog.convert_from(bytes, 'UTF8');
exception when others then
  return pg_catalog.encode(bytes, 'escape');
end
$function$;

-- Markers as people read them.
create view {prefix}markers_readable as
select
  {prefix}readable(s.consumer) as consumer,
  {prefix}readable(s.source) as source,
  s.generation,
  case get_byte(m.id, 0)
    when 0 then {prefix}readable(substr(m.id, 2))
    when 1 then encode(substr(m.id, 2), 'hex')::uuid::text
    else {prefix}readable(m.long_id)
  end as id,
  case m.outcome
    when 1 then 'applied'
    when 2 then 'waiting'
    when 3 then 'parked'
    when 4 then 'dead_lettered'
    when 5 then 'discarded'
  end as outcome,
  m.version as fingerprint_version,
  encode(m.sum, 'hex') as fingerprint,
  m.at
from {prefix}markers m join {prefix}scopes s on s.number = m.scope;

-- The active generation of each consumer.
create view {prefix}generations as
select {prefix}readable(consumer) as consumer, generation as active, since
from {prefix}generation_states where state = 2;
