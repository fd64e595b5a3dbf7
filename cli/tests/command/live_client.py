"""What `rg.Client` does, against a server: run by `live.rs` with the path of the client and the address."""

import importlib.util
import sys

path, address = sys.argv[1:]
spec = importlib.util.spec_from_file_location("client", path)
module = importlib.util.module_from_spec(spec)
sys.modules["client"] = module
spec.loader.exec_module(module)

client = module.Client(address)
assert client.run == "demo", client.run
question = ("Ilse_Hagenthal", "cousin_of")
first, second = (answer["entity"] for answer in client.predict(*question)["answers"][:2])
assert client.decide((*question, first), "reject", note="wrong", who="ada") == 1
assert client.decide((*question, first), "reject", note="wrong", who="ada") == 0
assert client.decide((*question, second), "accept", who="ada") == 1
left = [answer["entity"] for answer in client.predict(*question)["answers"]]
assert first not in left and second not in left, left

facts = [("Newborn", "sibling_of", "Ilse_Hagenthal"), {"subject": "Newborn", "relation": "owns", "object": "A dog", "confidence": 0.5}]
assert client.add(facts, key="once") == 2
assert client.add(facts, key="once") == 2, "answered again, and not written again"
assert client.remove(facts[:1]) == 1
assert [item["kind"] for item in client.changes()] == ["reject", "accept", "add", "add", "remove"]
assert [item["outcome"] for item in client.verdicts()] == ["accepted", "rejected"]
assert client.standing()["sequence"] == 5
assert client.explain(*question, first)["object"]
queue = client.queue("cousin_of", limit=3)
assert len(queue) == 3 and all(item["why"] for item in queue), queue
assert len(client.queue(limit=2)) == 2
assert client.agreement()["reviewers"] == [{"who": "ada", "accept": 1, "reject": 1, "unsure": 0}]
assert client.reload() == "demo"
for wrong, status in (([("", "a", "b")], 400), ([(*question, first)], 409)):
    try:
        client.add(wrong)
        raise SystemExit(f"{wrong} was taken")
    except module.ServerError as error:
        assert error.status == status and error.detail, error
