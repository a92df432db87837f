-- name: migrations
create table if not exists {prefix}migrations (
  version integer primary key,
  name text not null,
  checksum text not null,
  at integer not null
);

-- name: migrated
insert into {prefix}migrations (version, name, checksum, at)
values (?1, ?2, ?3, cast(unixepoch('subsec') * 1000 as integer)) on conflict do nothing;

-- name: has migrations
select count(*) from sqlite_master where type = 'table' and name = '{prefix}migrations';

-- name: applied
select version, name, checksum, at from {prefix}migrations order by version;

-- name: lock setup
update {prefix}guard set number = number where number is null;

-- name: setup
insert into {prefix}setup (hash, name, at)
values (?, ?, cast(unixepoch('subsec') * 1000 as integer)) on conflict do nothing;

-- name: setup known
select true from {prefix}setup where hash = ?;
