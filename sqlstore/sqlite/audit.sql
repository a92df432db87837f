-- The tables have times in milliseconds since 1970, and the statements return times in
-- microseconds. A value that somebody has written with another type is read as if it had the right
-- type, so it differs from the sealed value.

-- name: unsealed
select a.number, cast(a.row as integer), cast(a.verb as text), cast(a.who as text), cast(a.why as text), cast(a.result as text),
  cast(a.at as integer) * 1000, cast(unixepoch('subsec') * 1000 as integer) * 1000
from {prefix}acts a
where a.number >= case when ?1 then -9223372036854775808 else (
  select case when count(*) < ?2 then -9223372036854775808 else min(s.act) end
  from (select l.act from {prefix}seals l order by l.sequence desc limit ?2) s) end
and not exists (select 1 from {prefix}seals s where s.act = a.number)
order by a.number limit ?3;

-- name: seal
insert into {prefix}seals (sequence, act, row, verb, who, why, result, at, sealed_at, keyed, previous, hash)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 / 1000, ?9 / 1000, ?10, ?11, ?12);

-- name: seal end
select cast(sequence as integer), cast(keyed as integer), cast(hash as blob), cast(proof as blob) from {prefix}seal_end;

-- name: set seal end
insert into {prefix}seal_end (one, sequence, keyed, hash, proof) values (1, ?1, ?2, ?3, ?4)
on conflict (one) do update set sequence = excluded.sequence, keyed = excluded.keyed, hash = excluded.hash, proof = excluded.proof;

-- name: seals
select s.sequence, cast(s.act as integer), cast(s.row as integer), cast(s.verb as text), cast(s.who as text), cast(s.why as text), cast(s.result as text),
  cast(s.at as integer) * 1000, cast(s.sealed_at as integer) * 1000,
  cast(s.keyed as integer), cast(s.previous as blob), cast(s.hash as blob),
  a.number, cast(a.row as integer), cast(a.verb as text), cast(a.who as text), cast(a.why as text), cast(a.result as text), cast(a.at as integer) * 1000
from {prefix}seals s left join {prefix}acts a on a.number = s.act
where s.sequence > ?1 order by s.sequence limit ?2;

-- name: audited acts
select a.number, cast(a.row as integer), cast(a.verb as text), cast(a.who as text), cast(a.why as text), cast(a.result as text),
  cast(a.at as integer) * 1000, coalesce(cast(s.sequence as integer), 0)
from {prefix}acts a left join {prefix}seals s on s.act = a.number
where a.number > ?1 order by a.number limit ?2;

-- name: erased
select row, verb, who, why, result, at from {prefix}acts
where row = 0 and result = ? order by number limit ?;
