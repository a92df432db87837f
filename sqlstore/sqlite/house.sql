-- name: foreign keys
pragma foreign_keys;

-- name: file
select coalesce(file, '') from pragma_database_list where name = 'main';

-- name: scope
select number from {prefix}scopes where consumer = ? and source = ? and generation = ?;

-- name: new scope
insert into {prefix}scopes (consumer, source, generation) values (?, ?, ?) on conflict do nothing;

-- name: position
select "offset", length, "check" from {prefix}positions where consumer = ? and lane = ?;

-- name: save position
insert into {prefix}positions (consumer, lane, "offset", length, "check", at)
values (?, ?, ?, ?, ?, cast(unixepoch('subsec') * 1000 as integer))
on conflict (consumer, lane) do update
set "offset" = excluded."offset", length = excluded.length, "check" = excluded."check", at = excluded.at;

-- name: keep position
insert into {prefix}positions (consumer, lane, "offset", length, "check", at)
values (?, ?, ?, ?, ?, cast(unixepoch('subsec') * 1000 as integer))
on conflict (consumer, lane) do nothing;

-- name: forget position
delete from {prefix}positions where consumer = ? and lane = ?;

-- name: old table
select '"' || replace(name, '"', '""') || '"' from sqlite_master
where type in ('table', 'view') and name = ?1 collate nocase;

-- name: old columns
select name, '"' || replace(name, '"', '""') || '"', lower(type), 0, "notnull" and dflt_value is null, true, ''
from pragma_table_info(?1);

-- name: seed first
select typeof(t.{id}), {value} from {table} t
where ({where}) and t.{id} is not null
order by t.{id} limit ?1;

-- name: seed next
select typeof(t.{id}), {value} from {table} t
where ({where}) and t.{id} > {last} and ?3 is not null
order by t.{id} limit ?1;

-- name: lock setup
update {prefix}guard set number = number where number is null;

-- name: setup
insert into {prefix}setup (hash, name, at)
values (?, ?, cast(unixepoch('subsec') * 1000 as integer)) on conflict do nothing;

-- name: setup_known
select true from {prefix}setup where hash = ?;

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

-- name: marker
select m.outcome, m.at from {prefix}scopes s join {prefix}markers m on m.scope = s.number
where s.consumer = ? and s.source = ? and m.id = ? order by s.generation desc limit 1;
