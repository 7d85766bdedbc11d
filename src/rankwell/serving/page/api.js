// The calls to the server. A refusal is thrown as ServerError with the server's own words.

export class ServerError extends Error {
  constructor(message, status, parameter = null) {
    super(message);
    this.status = status;
    this.parameter = parameter;
  }

  /** Whether the same request may succeed a little later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

async function call(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not answer. Is it still running?", 0);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  const words =
    typeof body?.error === "string" ? body.error : `The server answered ${response.status} ${response.statusText}.`;
  throw new ServerError(words, response.status, body?.parameter ?? null);
}

async function get(path, given = {}, signal = undefined) {
  const pairs = Object.entries(given).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const parameters = pairs.filter(([, value]) => value !== "" && value !== false);
  const text = new URLSearchParams(parameters.map(([name, value]) => [name, String(value)])).toString();
  const response = await call(text ? `${path}?${text}` : path, { signal });
  return response.json();
}

function post(path, body) {
  // keepalive: the request is sent even when the click leaves the page.
  return call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    keepalive: true,
  });
}

export const search = (given, signal) => get("search", given, signal);
export const compare = (given, signal) => get("compare", given, signal);
export const explain = (given, signal) => get("explain", given, signal);
export const rankers = () => get("rankers");
export const indexFacts = () => get("index");
export const postClick = (impression, document) => post("clicks", { impression, document });
export const postVote = (query, document, vote) => post("votes", { query, document, vote });
