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
