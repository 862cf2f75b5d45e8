"""The page, in a browser, on a server with random models: what a person does with it, and what it must never do."""

import json
import shlex
import shutil
from urllib.parse import quote

import numpy as np
import pytest
from server_fixture import make_catalogue, running

from polyseme.serving.engine.catalogue import Catalogue
from polyseme.serving.settings import ServeSettings
from polyseme.tasks.features.bilstm import CharCnnSettings
from polyseme.tasks.fitting.loop import FitSettings
from polyseme.tasks.tagging.tagger import Tagger, TaggerSettings
from polyseme.text.tokenizer import tokenize

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright, of the dev group")
expect = playwright.expect
expect.set_options(timeout=30_000)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: apt-get install chromium")

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 320, "height": 640}
SENTENCES = [
    "He sat on the bank.",
    "A bank of the river,",
    "She said: banks! This bank isn't it.",
    "I put the money there.",
]
LINK = "#word=bank&s=a4 " + "&s=b ".join(map(quote, SENTENCES[:3]))


@pytest.fixture(scope="module")
def server():
    with running(make_catalogue()) as it:
        yield it


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as player:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = player.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, server):
    """Opens the page; whatever a browser complains about, and any request to elsewhere, is a failure."""
    contexts, complaints = [], []

    def visit(fragment=LINK, url=server.url, expected=(), clock_stands=False, **settings):
        context = browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **settings})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(url) or complaints.append(f"asked {asked.url}"))
        page.on(
            "console",
            lambda said: (
                said.type not in ("error", "warning")
                or any(known in said.text for known in expected)
                or complaints.append(said.text)
            ),
        )
        if clock_stands:
            page.clock.install(time=0)
            page.clock.pause_at(1)
        page.goto(f"{url}/{fragment}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


def shown(page, uses=3):
    """The page, once everything on it is there, with that many uses."""
    expect(page.locator("main[aria-busy=false]")).to_have_count(1)
    expect(page.locator("#map .dot")).to_have_count(uses)
    expect(page.locator("#cosines tbody tr")).to_have_count(uses)
    return page


def places(page):
    """Where the points of the large map are."""
    return page.eval_on_selector_all("#map .dot", "dots => dots.map(dot => dot.style.transform)")


def table(page):
    return [[float(cell) for cell in row.split()[1:]] for row in page.locator("#cosines tbody tr").all_inner_texts()]


def texts(page):
    return page.locator("#uses .words").all_inner_texts()


def picked(page):
    return page.locator("#uses [aria-checked=true]").all_inner_texts()


def type_sentence(page, text):
    page.get_by_label("Add a sentence", exact=True).fill(text)
    page.keyboard.press("Enter")


def test_who_comes_sees_one_point_become_several(visit):
    page = shown(visit("", clock_stands=True, reduced_motion="no-preference"), 6)
    slider = page.get_by_role("slider", name="Layer")
    expect(slider).to_have_value("0")
    assert len(set(places(page))) == 1
    expect(page.locator("#summary")).to_contain_text("All 6 uses have the same vector")
    for layer in ("1", "2"):
        page.clock.run_for(1100)
        expect(slider).to_have_value(layer)
        assert len(set(places(page))) == 6
    assert len(picked(page)) == 6
    assert set(picked(page)) == {page.get_by_role("heading", level=1).inner_text()}


def test_the_page_says_what_one_sees(visit):
    page = shown(visit())
    expect(page.locator(".intro")).to_contain_text("One word in several sentences")
    expect(page.get_by_role("heading", name="Map of the uses: layer 2")).to_be_visible()
    expect(page.get_by_role("heading", name="Mean cosine similarity, layer by layer")).to_be_visible()
    legend = page.locator(".legend")
    for part in ("Each dot is the use of the word in one sentence", "Colours mark the meaning", "A trail leads from"):
        expect(legend).to_contain_text(part)
    page.get_by_role("slider", name="Layer").press("Home")
    expect(page.locator("#map-title")).to_have_text("Map of the uses: spelling")


def test_every_example_has_its_word_in_every_sentence(visit):
    page = visit()
    for word in ("put", "Paris", "bank", "play", "stick", "spring"):
        page.get_by_role("button", name=word, exact=True).click()
        shown(page, 6)
        expect(page.get_by_role("heading", level=1)).to_have_text(word)
        assert picked(page) == [word] * 6
        for row in page.locator("#uses .words").all():
            (sentence,) = tokenize(row.inner_text())
            assert row.locator(".word").all_inner_texts() == sentence.words
        assert page.url.endswith(f"#example={word}")


def test_the_slider_goes_from_the_spelling_to_the_mean(visit, server):
    page = shown(visit())
    slider = page.get_by_role("slider", name="Layer")
    words = [["He", "sat", "on", "the", "bank", "."], ["A", "bank", "of", "the", "river", ","]]
    first, second = server.service.catalogue.default.encoder.embed(words)
    for key, layer, name in (("Home", 0, "spelling"), ("ArrowRight", 1, "layer 1"), ("End", None, "mean")):
        slider.press(key)
        expect(slider).to_have_attribute("aria-valuetext", name)
        expect(page.locator("caption")).to_contain_text(name)
        one, other = (first.mean(0)[4], second.mean(0)[1]) if layer is None else (first[layer, 4], second[layer, 1])
        cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        assert table(page)[0][1] == pytest.approx(cosine, abs=0.006)
        assert (len(set(places(page))) == 1) == (layer == 0)
    assert page.url.endswith("layer=mean")


def test_sentences_are_typed_edited_and_removed(visit):
    page = shown(visit())
    type_sentence(page, "My bank isn't open.")
    shown(page, 4)
    assert picked(page) == ["bank"] * 4
    page.get_by_role("button", name="Edit sentence 2").click()
    page.get_by_label("Text of sentence 2").fill("Nothing to be found")
    page.get_by_role("radio", name="Sense d").check()
    page.get_by_role("button", name="Save").click()
    shown(page, 3)
    changed = page.locator("#uses li").nth(1)
    expect(changed).to_contain_text("Pick a word in this sentence.")
    expect(changed).to_have_class("use sense-d")
    changed.get_by_text("found").click()
    shown(page, 4)
    expect(page.get_by_role("heading", level=1)).to_have_text("bank, found")
    page.get_by_role("button", name="Remove sentence 1").click()
    shown(page, 3)
    page.get_by_role("button", name="Edit sentence 1").click()
    page.get_by_label("Text of sentence 1").fill("given up")
    page.keyboard.press("Escape")
    assert texts(page)[0] == "Nothing to be found"
    for _ in range(3):
        page.get_by_role("button", name="Remove sentence 1").click()
    expect(page.locator("#map")).to_be_hidden()
    type_sentence(page, "All new")
    page.get_by_text("new", exact=True).click()
    shown(page, 1)


def test_another_word_is_picked_wherever_it_stands(visit):
    page = shown(visit())
    before = places(page)
    page.locator("#uses li").first.get_by_text("the", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("the, bank")
    assert picked(page) == ["the", "the", "bank"]  # the last has none, and keeps its own
    shown(page)
    assert places(page) != before


def test_a_link_holds_everything(visit):
    page = shown(visit())
    type_sentence(page, "50% of a bank & more, 100 # + “ok” 日本")
    shown(page, 4)
    page.locator("#uses li").nth(3).get_by_text("ok").click()
    page.get_by_role("button", name="Show details of use 3").click()
    page.get_by_role("slider", name="Layer").press("Home")
    expect(page.locator("caption")).to_contain_text("spelling")
    other = shown(visit("#" + page.url.partition("#")[2]), 4)
    expect(other.locator("caption")).to_contain_text("spelling")
    assert (texts(other), picked(other), table(other)) == (texts(page), picked(page), table(page))
    assert picked(other) == ["bank", "bank", "bank", "ok"]
    expect(other.locator("#details-title")).to_have_text("Use 3 in detail")


def test_a_broken_link_leads_to_what_can_be_made_of_it(visit):
    page = shown(visit("#example=none&layer=999999&use=99&model=nobody"), 6)
    for broken in ("#%E0%A4%A&layer=x", "#word=bank&s=z9 what&s=a99 The bank&use=7", "#s"):
        page.evaluate("link => { location.hash = link }", broken)
        shown(page, 1 if "word" in broken else 6)


def test_the_whole_page_is_used_with_keys_alone(visit):
    page = shown(visit())
    focused = page.locator(":focus")
    page.keyboard.press("Tab")
    expect(focused).to_have_text("Skip to the sentences")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(focused).to_have_text("bank")
    page.keyboard.press("ArrowLeft")
    expect(focused).to_have_text("the")
    expect(page.get_by_role("heading", level=1)).to_have_text("the, bank")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(focused).to_have_attribute("aria-label", "Text of sentence 1")
    page.keyboard.press("End")
    page.keyboard.type(" Indeed!")
    page.keyboard.press("Enter")
    expect(page.locator("#uses .words").first).to_have_text("He sat on the bank. Indeed!")
    expect(focused).to_have_attribute("aria-label", "Edit sentence 1")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    shown(page, 2)
    expect(focused).to_have_attribute("aria-label", "Remove sentence 1")


def test_a_phone_shows_all_of_it_in_one_column(visit):
    page = shown(visit(viewport=NARROW, has_touch=True, is_mobile=True))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    top, below = (page.locator(name).bounding_box() for name in ("#map", "#uses"))
    assert top["y"] + top["height"] <= below["y"]
    page.locator("#uses li").first.get_by_text("the", exact=True).tap()
    expect(page.get_by_role("heading", level=1)).to_have_text("the, bank")
    labels = page.eval_on_selector_all("#map .label", "all => all.map(one => one.getBoundingClientRect().toJSON())")
    assert len(labels) == 3
    assert all(label["left"] >= 0 and label["right"] <= NARROW["width"] for label in labels)


ODD = [
    "בנק הוא מקום לכסף.",
    "我在银行取钱。",
    "👩‍👩‍👧 went to the bank 🏦!",
    "<img src=x onerror=alert(1)> bank & <b>bold</b>",
    "bank " + "x" * 400,
    "bank " * 300,
]


def test_any_script_is_shown_as_it_was_written(visit):
    page = shown(visit("#word=bank&" + "&".join(f"s=a {quote(text)}" for text in ODD)), 4)
    assert [text.strip() for text in texts(page)] == [text.strip() for text in ODD]
    assert page.locator("#uses img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    first = page.locator("#uses li").first
    first.get_by_text("הוא").click()
    shown(page, 5)
    first.locator("[aria-checked=true]").press("ArrowLeft")  # onward, in this script
    expect(first.locator("[aria-checked=true]")).to_have_text("מקום")


def test_one_use_in_detail(visit, server):
    page = shown(visit())
    words = ["He", "sat", "on", "the", "bank", "."]
    halves = page.locator(".predictions section")
    expect(halves).to_have_count(3)
    unread = [half.locator(".unread").all_text_contents() for half in halves.all()]
    assert unread == [["[not read: .]"], ["[not read: He sat on the ]"], []]
    _, answer = server.post("/v1/predict", {"sentence": words, "position": 4, "top": 7})
    for half, name in zip(halves.all(), ("forward", "backward", "both"), strict=True):
        assert half.locator(".term").all_inner_texts() == [guess["word"] for guess in answer[name]]
    _, answer = server.post("/v1/neighbours", {"sentence": words, "position": 4, "layer": 2, "top": 6})
    shares = [f"{each['similarity']:.2f}" for each in answer["contextual"]]
    assert page.locator(".context .value").all_inner_texts() == shares
    alone = page.locator("#details .columns:not(.predictions) .term")
    assert alone.all_inner_texts() == [each["word"] for each in answer["static"]]
    page.get_by_role("button", name="Show details of use 2").click()
    expect(page.locator("#details-title")).to_have_text("Use 2 in detail")
    expect(page.locator(".quote")).to_have_text("A bank of the river,")


def test_other_models_are_shown_beside_and_can_be_selected(visit):
    page = shown(visit())
    figures = page.locator("#other-maps figure:visible")
    expect(figures).to_have_count(2)
    dots = figures.nth(1).locator(".dot")
    expect(dots).to_have_count(3)
    assert len(set(dots.evaluate_all("all => all.map(dot => dot.style.transform)"))) == 1  # static vectors never move
    page.get_by_role("button", name="Select model other").click()
    expect(page.locator("#other-maps figure:visible strong")).to_have_text(["small", "vectors"])
    expect(page.locator(".predictions")).to_have_count(0)  # it has no language model
    page.get_by_role("button", name="Select model vectors").click()
    expect(page.get_by_role("slider", name="Layer")).to_be_disabled()
    expect(page.locator("caption")).to_contain_text("word")
    assert np.allclose(table(page), 1)


def test_what_is_copied_computes_what_is_shown(visit, server, capsys):
    page = shown(visit(permissions=["clipboard-read", "clipboard-write"]))
    page.get_by_role("slider", name="Layer").press("End")
    expect(page.locator("caption")).to_contain_text("mean")
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#copied")).to_have_text("Copied")
    namespace = {}
    exec(page.evaluate("navigator.clipboard.readText()"), namespace)
    namespace["embedder"].close()
    np.testing.assert_allclose(namespace["cosines"], table(page), atol=0.006)
    capsys.readouterr()
    page.get_by_role("button", name="curl").click()
    command = shlex.split(page.locator("#export-text").inner_text().replace("\\\n", " "))
    assert command[:2] == ["curl", f"{server.url}/v1/compare"]
    _, answer = server.post("/v1/compare", json.loads(command[-1]))
    np.testing.assert_allclose(answer["layers"][0]["cosines"], table(page), atol=0.006)
    page.get_by_role("button", name="link").click()
    assert page.locator("#export-text").inner_text() == page.url


def test_what_goes_wrong_is_said_in_one_sentence(visit):
    page = shown(visit(expected=["413", "429", "ERR_FAILED"]))
    type_sentence(page, "bank " * 2000)
    refusal = page.locator("#uses li").nth(3).locator(".hint")
    expect(refusal).to_have_text("A sentence may have 1,024 words, not 2,000.")
    shown(page)
    page.route("**/v1/compare", lambda route: route.fulfill(status=429, headers={"Retry-After": "1"}), times=1)
    type_sentence(page, "a bank, later")
    shown(page, 4)
    page.route("**/v1/**", lambda route: route.abort())
    type_sentence(page, "another bank")
    expect(page.get_by_role("alert")).to_have_text("The server does not respond. Is it still running?")
    page.unroute("**/v1/**")
    page.get_by_role("button", name="Remove sentence 4").click()
    shown(page, 5)
    expect(page.locator("#error")).to_be_hidden()


def test_a_key_is_asked_for_and_used(visit):
    with running(Catalogue([make_catalogue().default]), ServeSettings(key="open sesame")) as guarded:
        page = visit(url=guarded.url, expected=["401"])
        expect(page.get_by_role("alert")).to_have_text("This server requires a key.")
        page.get_by_label("This server requires a key").fill("open sesame")
        page.keyboard.press("Enter")
        shown(page)
        expect(page.locator("#key")).to_be_hidden()


def test_a_tagger_shows_its_labels_and_its_layer_weights(visit):
    default = make_catalogue().default
    small = TaggerSettings(cells=12, layers=1, spelling=CharCnnSettings(dim=8, filters=12))
    tagger = Tagger(default.encoder, settings=small, fit_settings=FitSettings(epochs=1))
    tagger.fit([["the", "bank"]] * 8, [["X", "Y"]] * 8, dev=([["the", "bank"]], [["X", "Y"]]))
    with running(Catalogue([default], tagger, "letters")) as tagging:
        page = shown(visit(url=tagging.url))
        words = page.locator("#uses .words").first.locator(".word")
        (labels,) = tagger.predict([words.all_inner_texts()])
        for word, label in zip(words.all(), labels, strict=True):
            expect(word).to_have_attribute("data-label", label)
        (mix,) = tagger.mixes()["input"]
        assert page.locator("#tagger .bar").all_inner_texts() == [f"{weight:.2f}" for weight in mix.weights]


@pytest.mark.parametrize("settings", [{"color_scheme": "dark"}, {"viewport": NARROW}], ids=["dark", "light and narrow"])
def test_axe_finds_no_fault_that_shuts_anybody_out(visit, settings):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe, of the dev group")
    page = shown(visit(**settings))
    expect(page.locator(".context")).to_have_count(6)
    page.get_by_role("button", name="Edit sentence 2").click()
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    grave = {fault["id"]: fault["nodes"][0]["html"] for fault in found if fault["impact"] in ("serious", "critical")}
    assert grave == {}
