-- name: migrations
do $do$
begin
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('{prefix}migrations', 0));
  if pg_catalog.to_regnamespace('{schema}') is null then
    create schema {schema};
  end if;
  if pg_catalog.to_regclass('{prefix}migrations') is null then
    create table {prefix}migrations (
      version integer primary key,
      name text not null,
      checksum text not null,
      at timestamptz not null
    );
  end if;
end
$do$;

-- name: migrated
insert into {prefix}migrations (version, name, checksum, at)
values ($1, $2, $3, clock_timestamp()) on conflict do nothing;

-- name: has migrations
select to_regclass('{prefix}migrations') is not null;

-- name: applied
select version, name, checksum, (extract(epoch from at) * 1000)::bigint from {prefix}migrations order by version;

-- name: lock setup
select set_config('lock_timeout', '0', true), pg_advisory_xact_lock(hashtextextended('{prefix}setup', 0)),
  set_config('lock_timeout', '10s', true);

-- name: setup
insert into {prefix}setup (hash, name, at) values ($1, $2, clock_timestamp()) on conflict do nothing;

-- name: setup known
select true from {prefix}setup where hash = $1;

-- name: bounds
alter table {prefix}markers add constraint known_outcomes check (outcome between 1 and 5) not valid;

alter table {prefix}inbox add constraint known_states check (state in ('RECEIVED', 'IN_PROGRESS', 'COMPLETED',
  'FAILED_RETRYABLE', 'FAILED_TERMINAL', 'PARKED', 'BLOCKED', 'DEAD_LETTERED', 'DISCARDED')) not valid;

alter table {prefix}markers validate constraint known_outcomes;

alter table {prefix}inbox validate constraint known_states;

-- name: unbounded
with known (number, name, "constraint") as (values
  (0, '{prefix}markers', 'known_outcomes'), (1, '{prefix}inbox', 'known_states')
), open as (
  select k.number, c.oid is null as missing
  from known k join pg_class t on t.oid = to_regclass(k.name) and pg_has_role(t.relowner, 'usage')
  left join pg_constraint c on c.conrelid = t.oid and c.conname = k."constraint"
  where c.oid is null or not c.convalidated
)
select number from open where missing union all select number + 2 from open order by 1;
