-- name: foreign keys
pragma foreign_keys;

-- name: file
select coalesce(file, '') from pragma_database_list where name = 'main';

-- name: scope
select number from {prefix}scopes where consumer = ? and source = ? and generation = ?;

-- name: scopes
select number, source from {prefix}scopes where consumer = ? order by number;

-- A new scope starts with the low-water mark of the other scopes. Markers of its messages may have
-- been written under a previous identity or another name of the source, and removed since.

-- name: new scope
insert into {prefix}scopes (consumer, source, generation, low)
select ?1, ?2, ?3, (select max(o.low) from {prefix}scopes o where o.consumer = ?1) where true on conflict do nothing;

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

-- name: marker
select m.outcome, m.at, m.version, m.sum from {prefix}scopes s join {prefix}markers m on m.scope = s.number
where s.consumer = ? and s.source = ? and m.id = ? order by s.generation desc limit 1;

-- Known markers returns the markers of an id under each source of a consumer, and whether a result
-- is stored. It does one look-up for each source.

-- name: known markers
select s.source, s.generation, m.outcome, m.at, m.version, m.sum,
  exists (select 1 from {prefix}results r where r.scope = m.scope and r.id = m.id)
from {prefix}scopes s cross join {prefix}markers m on m.scope = s.number and m.id = ?2
where s.consumer = ?1 order by s.source, s.generation limit 1000;

-- name: clock
select cast(unixepoch('subsec') * 1000 as integer);
