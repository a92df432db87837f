-- Scopes: the number that stands for (consumer, source, generation) in every other table.
create table {prefix}scopes (
  number integer primary key autoincrement,
  consumer blob not null,
  source blob not null,
  generation integer not null,
  unique (consumer, source, generation)
);

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

-- A row in guard refers to one in guard_end, where there never is one: no
-- transaction with an open guard can commit.
create table {prefix}guard_end (
  number integer primary key
);

create table {prefix}guard (
  number integer primary key references {prefix}guard_end (number) deferrable initially deferred,
  asked integer
);

-- Inbox: what left the direct path, with its message.
create table {prefix}inbox (
  number integer primary key autoincrement,
  revision integer not null,
  scope integer not null,
  id blob not null,
  long_id blob,
  conflict blob not null,
  version integer not null,
  sum blob,
  surrogate integer not null,
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
  due_at integer,
  locked_until integer,
  token integer,
  started integer not null,
  finished integer not null,
  repeated integer not null,
  step text,
  first_error text not null,
  last_error text not null,
  unique (scope, id, conflict)
);

create index {prefix}inbox_state on {prefix}inbox (state, due_at);

-- Acts: who did what to a row, when and why. Never changed, never deleted.
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

-- Positions of sources that have no broker: delete a row to read its file again.
create table {prefix}positions (
  consumer text not null,
  lane text not null,
  "offset" integer not null,
  length integer not null,
  "check" blob not null,
  at integer not null,
  primary key (consumer, lane)
) without rowid;

-- Statements of the user's that ran once, by their hash.
create table {prefix}setup (
  hash text primary key,
  name text not null,
  at integer not null
) without rowid;

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
