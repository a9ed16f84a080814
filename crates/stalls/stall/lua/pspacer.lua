-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Makes the comments of "pspacer stalls --annotate" into fields that Wireshark and tshark
-- filter and show as columns: psp.cause, psp.side, psp.stall and others.
--
--   tshark -X lua_script:pspacer.lua -r OUT.pcapng -Y 'psp.cause == "rto-tail"'
--
-- For Wireshark copy this file into the folder that Help > About > Folders names as
-- "Personal Lua Plugins".

local psp = Proto("pspacer", "pspacer: why the transfer stalled")

-- The words of a comment, and the fields that they become.
local fields = {
    stall = ProtoField.string("psp.stall", "Stall", "Number of the connection and of its stall"),
    cause = ProtoField.string("psp.cause", "Cause"),
    root = ProtoField.string("psp.root", "Cause behind it"),
    side = ProtoField.string("psp.side", "Side", "Whose side the cause is on"),
    confidence = ProtoField.string("psp.confidence", "Confidence"),
    kind = ProtoField.string("psp.kind", "Kind"),
    direction = ProtoField.string("psp.direction", "Direction", "Whose data stalled"),
    start_s = ProtoField.double("psp.start_s", "Start", "Seconds after the first segment"),
    duration_s = ProtoField.double("psp.duration_s", "Duration", "Seconds"),
}
local text = ProtoField.string("psp.text", "What happened")
local advice = ProtoField.string("psp.advice", "What to do")
-- What a comment's line of advice begins with.
local ARROW = "→ "
psp.fields = {
    fields.stall, fields.cause, fields.root, fields.side, fields.confidence, fields.kind,
    fields.direction, fields.start_s, fields.duration_s, text, advice,
}

local comment = Field.new("frame.comment")

local function show(tree, value)
    local head, rest = value:match("^pspacer ([^\n]*)\n?(.*)$")
    if not head or not head:find("stall=", 1, true) then
        return
    end
    local shown = tree:add(psp)
    local found = {}
    for key, word in head:gmatch("([%a_]+)=(%S+)") do
        local field = fields[key]
        if field then
            local number = key:sub(-2) == "_s" and tonumber(word)
            if number then
                shown:add(field, number)
            elseif key:sub(-2) ~= "_s" then
                shown:add(field, word)
            end
            found[key] = word
        end
    end
    for line in rest:gmatch("[^\n]+") do
        if line:sub(1, #ARROW) == ARROW then
            shown:add(advice, line:sub(#ARROW + 1))
        else
            shown:add(text, line)
        end
    end
    shown:append_text(", stall " .. (found.stall or "?") .. ": " .. (found.cause or "?"))
end

function psp.dissector(_, _, tree)
    for _, one in ipairs({ comment() }) do
        show(tree, tostring(one.value))
    end
end

-- The comments have to be dissected although no filter names them.
register_postdissector(psp, true)
