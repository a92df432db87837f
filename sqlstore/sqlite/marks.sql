-- name: markers
{prefix}markers;

-- name: guard
insert into {prefix}guard (number) select 1 from pragma_foreign_keys where foreign_keys = 1;

-- name: unguard
delete from {prefix}guard where number = 1;

-- name: guarded
update {prefix}guard set asked = 1 where number = 1;

-- name: lock
update {prefix}guard set number = number where number is null;

-- name: mark
insert into {prefix}markers (scope, id, outcome, version, sum, long_id, at)
values {list:(?, ?, ?, ?, ?, ?, cast(unixepoch('subsec') * 1000 as integer))}
on conflict (scope, id) do nothing
returning scope, id;

-- name: judge
with asked (number, scope, id, conflict) as (values {list:(?, ?, ?, ?)})
select asked.number, m.outcome, m.version, m.sum, exists (
  select 1 from {prefix}inbox i where i.scope = asked.scope and i.id = asked.id and i.conflict = asked.conflict)
from asked cross join {prefix}markers m on m.scope = asked.scope and m.id = asked.id;

-- name: trim
delete from {prefix}markers where (scope, id) in (values {list:(?, ?)});

-- name: outcome
update {prefix}markers set outcome = ? where scope = ? and id = ?;

-- Turn markers changes only markers that still have the content that was read before. Such a marker
-- still belongs to the same row.

-- name: turn markers
with asked as materialized (
  select i.scope, i.id, a.value as turn from json_each(?1) a cross join {prefix}inbox i where i.number = a.value ->> 'n'
)
update {prefix}markers as m set outcome = a.turn ->> 'outcome', version = a.turn ->> 'version', sum = unhex(a.turn ->> 'sum'),
  at = cast(unixepoch('subsec') * 1000 as integer)
from asked a
where m.scope = a.scope and m.id = a.id
  and m.outcome = a.turn ->> 'seen_outcome' and m.version = a.turn ->> 'seen_version' and m.sum is unhex(a.turn ->> 'seen_sum');
