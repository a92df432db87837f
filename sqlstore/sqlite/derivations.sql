-- name: derivations
select consumer, generation, derivation, coalesce(former, -1), retired, first_at
from {prefix}derivations where consumer = ?1 or length(?1) = 0 order by consumer, generation;

-- name: add derivation
insert into {prefix}derivations (consumer, generation, derivation, former, retired, first_at)
values (?, ?, ?, nullif(?, -1), 0, cast(unixepoch('subsec') * 1000 as integer))
on conflict do nothing;

-- name: retire derivation
update {prefix}derivations set retired = ?1 where consumer = ?2 and generation = ?3 and retired <> ?1;

-- name: forget former
update {prefix}derivations set former = null where consumer = ?1 and former = ?2;

-- name: owner
select owner from {prefix}owners where consumer = ?1;

-- name: new owner
insert into {prefix}owners (consumer, owner, changed_at) values (?1, ?2, cast(unixepoch('subsec') * 1000 as integer))
on conflict do nothing;

-- name: change owner
update {prefix}owners set owner = ?1, changed_at = cast(unixepoch('subsec') * 1000 as integer) where consumer = ?2 and owner = ?3;

-- New markers wait writes the markers of conflicts with a previous identity, because these
-- conflicts have no markers.

-- name: new markers wait
insert into {prefix}markers (scope, id, outcome, version, sum, long_id, at)
select i.scope, i.id, 2, i.version, i.sum, i.long_id, cast(unixepoch('subsec') * 1000 as integer)
from json_each(?1) a cross join {prefix}inbox i
where i.number = a.value ->> 'n' and i.reason = ?2 and length(i.conflict) > 0
on conflict (scope, id) do nothing;
