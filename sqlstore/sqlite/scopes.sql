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

-- name: marker
select m.outcome, m.at from {prefix}scopes s join {prefix}markers m on m.scope = s.number
where s.consumer = ? and s.source = ? and m.id = ? order by s.generation desc limit 1;
