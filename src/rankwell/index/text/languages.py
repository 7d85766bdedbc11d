"""Languages: the stemmer of each, and its common words.

Common words are articles, prepositions, conjunctions, pronouns and auxiliaries, which say little about the subject of a
text. They are indexed as all words are, so that phrases find them; in a query they count only where nothing else does.
`language_detection` recognises languages by them.

Words are as they are written, with apostrophes as separators: English "don't" is "don" and "t".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rankwell.errors import ParameterError


@dataclass(frozen=True)
class Language:
    """One language.

    code : of ISO 639-1
    name : in English
    stemmer : the name of its Snowball algorithm, None if there is none
    common_words : see the head of this file; () where this release has no list
    """

    code: str
    name: str
    stemmer: str | None
    common_words: tuple[str, ...] = ()


_COMMON_WORDS = {
    "ar": "في من على إلى عن أن إن هذا هذه ذلك التي الذي كان كانت هو هي مع ما لا أو ثم بعد قد كل بين",
    "ca": "el la els les un una i o de del dels a al als en amb per que es és no se com més però són ha han "
    "aquest aquesta pel també era",
    "cs": "a v na se je z s do o k i že to za po ve ke od ale jako pro jsou byl by nebo si co jeho která který "
    "které tak také aby není",
    "da": "af alle at blev da de dem den denne der deres det dette du efter eller en er et for fra ham han har "
    "havde hun hvad hvor i ikke ind jeg kan med men min ned nu og om op os over på sig sin skal som til "
    "ud var vi vil",
    "de": "aber als am an auch auf aus bei bin bis bist da das dass dem den der des die dies diese dieser "
    "dieses durch ein eine einem einen einer eines er es für hat haben hatte ich ihm ihn ihr ihre im in "
    "ist ja kann mit nach nicht noch nur ob oder sein seine sich sie sind so um und uns vom von vor war "
    "waren was weil wenn werden wie wir wird wurde zu zum zur über",
    "el": "και το να του η της με που την από για είναι τα ο τον οι σε των τη στο στη στην θα δεν ένα μια τους "
    "τις αυτό ως ή όπως κατά",
    "en": "a about am an and any are as at be been being but by can could did do for from had has have he her "
    "him his how i if in into is it its me my no not of on or our s shall she should so some such t than "
    "that the their them then there these they this those to was we were what when where which who will "
    "with would you your",
    "eo": "la kaj de estas en al ne por kun mi vi li ŝi ĝi ni ili tiu tio kiu kio estis aŭ sed pri el ĉi oni kiel da",
    "es": "a al algo como con cual de del donde el él ella ellas ellos en entre era es esa ese eso esta está "
    "este esto ha han hay la las le les lo los más me mi muy no nos o para pero por porque que qué quien "
    "se ser si sin sobre son su sus también un una uno y ya",
    "et": "ja on ei et see kui ka oli aga ning või mis ta kes selle nii oma siis seda olid nad olema kuid",
    "eu": "eta da ez bat du dira hau izan zen dute ere baina edo bere hori dela zuen den",
    "fa": "و در به از که این را با است برای آن یک خود تا کرد بر هم نیز شد بود ما یا هر",
    "fi": "ei eivät en että he hän ja jos joka jotka kanssa kuin kun me mikä mukaan mutta myös ne niin nyt oli "
    "olisi olivat olla on ovat se sekä sen siellä siitä sitä tai te tämä tämän vain voi",
    "fr": "a à ai au aux avec c ce ces cette comme d dans de des du elle elles en entre est et été être eux "
    "fait il ils j je l la le les leur leurs lui m ma mais me mes mon n ne nos notre nous on ont ou où "
    "par pas plus pour qu que qui s sa sans se ses si son sont sur t ta te tes ton tu un une vos votre "
    "vous y",
    "ga": "agus an ar as na i go is a ag le do ní sé sí bhí tá don leis chun nó ach ó sa atá",
    "hi": "के का की है में और से को हैं पर यह ने एक भी कि था जो थे थी हो या तक इस ही नहीं तो लिए",
    "hu": "a az és hogy nem is egy ez azt csak meg de ha volt van már mint vagy el sem ezt mert még kell lehet "
    "ki fel azonban után minden",
    "id": "yang dan di ke dari untuk dengan pada ini itu adalah tidak dalam akan oleh juga atau karena ada "
    "telah sebagai bahwa dapat para kami mereka saya",
    "it": "a ad agli ai al alla alle anche c che chi ci come con cui d da dai dal dalla dalle degli dei del "
    "della delle dello di dove e è ed era fra gli ha hanno i il in io l la le lei lo loro lui ma mi ne "
    "nei nel nella nelle noi non o per perché più quale quando quello questa queste questi questo se si "
    "sia sono su sua sue sui sul sulla suo tra un una uno",
    "lt": "ir kad yra su tai iš į bet kaip apie nuo o buvo jis už per jo ar ne jie dėl po bei prie",
    "ne": "छ र को मा यो पनि ले भने छन् गर्न लाई थियो हो भएको गरेको बाट तर",
    "nl": "aan al als bij dan dat de deze die dit door een en er had heb hebben heeft hem het hier hij hoe ik "
    "in is je kan maar me met mijn naar niet nog nu of om omdat onder ons ook op over te tot uit van voor "
    "waar was wat we wel werd wij wordt ze zich zij zijn zo zou",
    "no": "at av ble da de den denne der det dette du eller en er et etter for fra han har hun hva hvor i ikke "
    "jeg kan med men mot nå og om opp oss på seg sin skal som så til ut var ved vi vil være å",
    "pl": "a w i z na do się nie że to jest o jak po co ale przez od za dla są był tak jego ich być tym która "
    "który które oraz lub ze było przy",
    "pt": "a ao aos as até com como da das de dela dele do dos e é ela ele eles em entre era essa esse esta "
    "está este eu foi há isso já lhe mais mas me na não nas nem no nos nós o os ou para pela pelas pelo "
    "pelos por qual quando que quem se sem ser seu seus sua suas são também te tem um uma você",
    "ro": "a ai al ale am ar are au ca care ce cu da de din după este era fi fost în la mai nu o pe pentru prin "
    "sau se si și sunt un una unei unui ei el lui dar",
    "ru": "а без бы был была были было быть в вам вас весь во вот все всего всех вы где да для до его ее если "
    "есть ещё же за здесь и из или им их к как ко когда кто ли либо мне может мы на не него нее нет ни "
    "них но ну о об однако он она они оно от по под при с со так также такой там те тем то того тоже той "
    "только том ты у уже чего чей чем что чтобы эта эти это этого этой этом этот я",
    "sr": "и у је на да се су за од са не које који као али или из по то би био била ће i u je na da se su za "
    "od sa ne koje koji kao ali ili iz po to bi bio bila će",
    "sv": "alla att av blev bli då de dem den denna dess det detta dig din du där efter ej eller en er ett från "
    "för ha hade han har hennes henne hon honom hur här i icke inte jag kan med men mig min mot nu när "
    "någon något och om oss på sig sin ska som så till under upp ut var vad vi vid är över",
    "tr": "ve bir bu da de için ile çok o ne gibi daha olarak ama olan kadar ki mi var en her ya veya ben sonra "
    "ise değil",
    "yi": "און די דער אַ אין איז פון צו האט מיט אויף דאָס עס ער זיי זיך נישט",
}
_NAMES_AND_STEMMERS: Mapping[str, tuple[str, str | None]] = {
    "ar": ("Arabic", "arabic"),
    "ca": ("Catalan", "catalan"),
    "cs": ("Czech", "czech"),
    "da": ("Danish", "danish"),
    "de": ("German", "german"),
    "el": ("Greek", "greek"),
    "en": ("English", "english"),
    "eo": ("Esperanto", "esperanto"),
    "es": ("Spanish", "spanish"),
    "et": ("Estonian", "estonian"),
    "eu": ("Basque", "basque"),
    "fa": ("Persian", "persian"),
    "fi": ("Finnish", "finnish"),
    "fr": ("French", "french"),
    "ga": ("Irish", "irish"),
    "hi": ("Hindi", "hindi"),
    "hu": ("Hungarian", "hungarian"),
    "hy": ("Armenian", "armenian"),
    "id": ("Indonesian", "indonesian"),
    "it": ("Italian", "italian"),
    "ja": ("Japanese", None),
    "km": ("Khmer", None),
    "ko": ("Korean", None),
    "lo": ("Lao", None),
    "lt": ("Lithuanian", "lithuanian"),
    "my": ("Burmese", None),
    "ne": ("Nepali", "nepali"),
    "nl": ("Dutch", "dutch"),
    "no": ("Norwegian", "norwegian"),
    "pl": ("Polish", "polish"),
    "pt": ("Portuguese", "portuguese"),
    "ro": ("Romanian", "romanian"),
    "ru": ("Russian", "russian"),
    "sr": ("Serbian", "serbian"),
    "st": ("Sesotho", "sesotho"),
    "sv": ("Swedish", "swedish"),
    "ta": ("Tamil", "tamil"),
    "th": ("Thai", None),
    "tr": ("Turkish", "turkish"),
    "yi": ("Yiddish", "yiddish"),
    "zh": ("Chinese", None),
}

LANGUAGES: Mapping[str, Language] = {
    code: Language(code, name, stemmer, tuple(sorted(set(_COMMON_WORDS.get(code, "").split()))))
    for code, (name, stemmer) in _NAMES_AND_STEMMERS.items()
}
"""The languages by their codes."""


def get_language(name: str) -> Language:
    """A language by its code ("en") or its English name ("english")."""
    wanted = name.strip().lower()
    found = LANGUAGES.get(wanted) or next((one for one in LANGUAGES.values() if one.name.lower() == wanted), None)
    if found is None:
        raise ParameterError(
            f"must be one of {', '.join(LANGUAGES)} (or a name such as english), or none, got {name!r}.",
            parameter="language",
        )
    return found
