-- Scopes: the number that stands for (consumer, source, generation) in every other table.
create table {prefix}scopes (
  number bigint generated always as identity primary key,
  consumer bytea not null,
  source bytea not null,
  generation bigint not null,
  unique (consumer, source, generation)
);

-- Markers: what became of an identity. Outcomes: 1 applied, 2 waiting, 3 parked, 4 dead-lettered, 5 discarded.
create table {prefix}markers (
  scope bigint not null,
  at timestamptz not null,
  outcome smallint not null,
  version smallint not null,
  id bytea not null,
  sum bytea,
  long_id bytea,
  primary key (scope, id)
);

-- A row in guard refers to one in guard_end, where there never is one: no
-- transaction with an open guard can commit.
create table {prefix}guard_end (
  number bigint primary key
);

create table {prefix}guard (
  number bigint primary key references {prefix}guard_end (number) deferrable initially deferred
);

-- Inbox: what left the direct path, with its message.
create table {prefix}inbox (
  number bigint generated always as identity primary key,
  revision bigint not null,
  scope bigint not null,
  id bytea not null,
  long_id bytea,
  conflict bytea not null,
  version smallint not null,
  sum bytea,
  surrogate boolean not null,
  state text not null,
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
  due_at timestamptz,
  locked_until timestamptz,
  token bigint,
  started bigint not null,
  finished bigint not null,
  repeated bigint not null,
  step text,
  first_error text not null,
  last_error text not null,
  unique (scope, id, conflict)
);

create index {name}inbox_state on {prefix}inbox (state, due_at);

-- Acts: who did what to a row, when and why. Never changed, never deleted.
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

-- Positions of sources that have no broker: delete a row to read its file again.
create table {prefix}positions (
  consumer text not null,
  lane text not null,
  "offset" bigint not null,
  length bigint not null,
  "check" bytea not null,
  at timestamptz not null,
  primary key (consumer, lane)
);

-- Statements of the user's that ran once, by their hash.
create table {prefix}setup (
  hash text primary key,
  name text not null,
  at timestamptz not null
);

-- Bytes as people read them: text where they are, escapes where they are not.
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
