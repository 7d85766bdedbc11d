"""Language detection: short texts of many languages, and what must not be guessed."""

from __future__ import annotations

import pytest

from rankwell.corpus.document import Document
from rankwell.index.text.language_detection import SAMPLE_CHARACTERS, detect_language, sample_of

TEXTS = {
    "en": "The results were intended in part as an evaluation basis for different theoretical treatments of "
    "this problem, and it is shown that the lift of a wing in a slipstream can be found.",
    "de": "Der Hund lief über die Straße und sah, dass es dort nicht viel zu essen gab. Er war mit sich "
    "zufrieden, als er nach Hause kam, und das ist auch gut so.",
    "fr": "Le chat est sur la table et il ne veut pas en descendre. Les enfants ont dit que nous allons au "
    "marché avec leur mère dans une heure.",
    "es": "El perro está en la casa y no quiere salir porque hace frío. Los niños dijeron que van a la playa "
    "con su madre por la tarde.",
    "it": "Il gatto è sulla tavola e non vuole scendere. I bambini hanno detto che andranno al mercato con la "
    "madre per comprare il pane e le mele della signora.",
    "pt": "O gato está em cima da mesa e não quer descer. As crianças disseram que vão ao mercado com a mãe "
    "para comprar pão e as maçãs da senhora.",
    "nl": "De kat zit op de tafel en wil er niet van af. De kinderen zeiden dat ze met hun moeder naar de markt "
    "gaan om brood te kopen, en dat is ook wat het was.",
    "sv": "Katten sitter på bordet och vill inte gå ner. Barnen sade att de ska till marknaden med sin mor för "
    "att köpa bröd, och det är något som han inte har.",
    "da": "Katten sidder på bordet og vil ikke ned. Børnene sagde, at de skal på markedet med deres mor for at "
    "købe brød af en mand, der ikke blev der efter det.",
    "no": "Katten sitter på bordet og vil ikke ned. Barna sa at de skal til markedet med moren sin for å kjøpe "
    "brød av en mann som ikke ble der etter at han så det.",
    "fi": "Kissa on pöydällä eikä se halua tulla alas. Lapset sanoivat, että he menevät torille äidin kanssa, "
    "mutta hän ei ole siellä, kun me olemme ja jos se on niin kuin oli.",
    "ru": "Кошка сидит на столе и не хочет с него слезать. Дети сказали, что они пойдут на рынок с матерью, "
    "чтобы купить хлеб, но это было не так.",
    "tr": "Kedi masanın üstünde ve aşağı inmek istemiyor. Bu çok güzel bir gün ve ben bir ekmek için daha "
    "gideceğim ama o gibi olan bir şey var.",
    "el": "Η γάτα κάθεται στο τραπέζι και δεν θέλει να κατέβει.",
    "ja": "吾輩は猫である。名前はまだ無い。",
    "zh": "中华人民共和国位于亚洲东部，太平洋西岸。",
    "ko": "대한민국은 동아시아의 한반도 남부에 위치한 나라이다.",
    "th": "ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอน",
}


@pytest.mark.parametrize("code", TEXTS)
def test_the_language_of_a_few_sentences(code):
    found = detect_language([TEXTS[code]])
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize("text", ["", "AB-1234 XZ-99 BC-17", "lorem ipsum dolor sit amet", "1 2 3", "שלום עולם"])
def test_nothing_is_guessed_from_text_without_a_language(text):
    assert detect_language([text] * 20) is None


def test_some_foreign_words_do_not_matter():
    assert detect_language([TEXTS["en"]] * 3 + [TEXTS["ja"]]).code == "en"


def test_a_sample_ends_after_so_many_characters():
    first = Document("1", {"title": "a", "body": ["b" * 5, "c"]})
    texts = sample_of([first, Document("2", {"body": "d" * SAMPLE_CHARACTERS}), Document("3", {"body": "never"})])
    assert texts[:3] == ["a", "bbbbb", "c"]
    assert sum(map(len, texts)) == SAMPLE_CHARACTERS
