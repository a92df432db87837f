-- The value of a key is a binary string with these fields:
--   1         the version of this format
--   event     how the last claim ended (a keystore.Event), or 0 while the claim has not ended
--   token     the token of the last claim
--   till      the end of the lease
--   span      the length of the lease
--   first     the time of the first claim, or 0 if that time is unknown
--   started   the number of claims that began
--   finished  the number of claims with a known outcome
--   made      the version of the fingerprint, or 0 without a fingerprint
--   sum       the hash of the fingerprint
-- The result follows the fields. Times are in milliseconds.
local form = '>BBc8I8I8I8I4I4Bc16'
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local stored = redis.call('GET', KEYS[1])
local version, event, token, till, span, first, started, finished, made, sum, rest
if stored then
  if string.byte(stored) ~= 1 or #stored < 59 then
    return redis.error_reply('SEMELFORM the value has not the form of a leased key')
  end
  version, event, token, till, span, first, started, finished, made, sum, rest = struct.unpack(form, stored)
  local ahead = false -- true if the clock was set back after a time was stored
  if till > now + span then
    till, ahead = now + span, true
  end
  if first > now + 1000 then -- forget the time of the first claim
    first, ahead = 0, true
  end
  if ahead then
    redis.call('SET', KEYS[1], struct.pack(form, 1, event, token, till, span, first, started, finished, made, sum) .. string.sub(stored, rest), 'KEEPTTL')
  end
end

-- step: claim
local mine, lease = ARGV[1], tonumber(ARGV[2])
local print, content = tonumber(ARGV[4]), ARGV[5]
local function answer(state, left)
  return {state, math.max(left, 0), started, finished, first == 0 and -1 or math.max(now - first, 0)}
end
if stored then
  if made ~= 0 and made == print and sum ~= content then
    return answer(5, 0)
  end
  if event == 1 or event == 2 then
    local a = answer(event + 2, 0)
    a[6] = string.sub(stored, rest)
    return a
  end
  if event == 0 and token == mine then
    return answer(1, till - now)
  end
  if token == mine or (event == 0 and till > now) then
    return answer(2, event == 0 and till - now or 0)
  end
else
  first, started, finished, made, sum = now, 0, 0, print, content
end
started = started + 1
redis.call('SET', KEYS[1], struct.pack(form, 1, 0, mine, now + lease, lease, first, started, finished, made, sum), 'PX', ARGV[3])
return answer(1, lease)

-- step: extend
local lease = tonumber(ARGV[2])
if not stored or event ~= 0 or token ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], struct.pack(form, 1, 0, token, now + lease, lease, first, started, finished, made, sum), 'KEEPTTL')
if redis.call('PTTL', KEYS[1]) < lease then
  redis.call('PEXPIRE', KEYS[1], lease)
end
return 1

-- step: end
local becomes = tonumber(ARGV[2])
if not stored or token ~= ARGV[1] then
  return 0
end
if event ~= 0 then
  return event == becomes and 1 or 0
end
if becomes == 5 then
  redis.call('DEL', KEYS[1])
  return 1
end
if becomes ~= 4 then
  finished = finished + 1
end
redis.call('SET', KEYS[1], struct.pack(form, 1, becomes, token, till, span, first, started, finished, made, sum) .. ARGV[4], 'PX', ARGV[3])
return 1
