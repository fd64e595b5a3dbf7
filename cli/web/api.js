// Asking the server. What goes wrong is thrown as a `Problem`.

export class Problem extends Error {
  constructor({ detail, suggestions, status, request_id }) {
    super(detail);
    Object.assign(this, { suggestions: suggestions ?? [], status, request_id });
  }
}

/** What the browser has kept under a name, if it keeps anything. */
export function kept(name, store = "localStorage") {
  try { return window[store].getItem("ruleguider:" + name); } catch { return null; }
}

/** Lets the browser keep a text; one that keeps nothing forgets it. */
export function keep(name, text, store = "localStorage") {
  try { window[store].setItem("ruleguider:" + name, text); } catch { /* until the page is left */ }
}

let token = kept("token");

/** Sends `given` with every request from now on. */
export function useToken(given) {
  token = given;
  keep("token", given);
}

/** The JSON at an address; `more` is what `fetch` takes besides. */
export async function fetched(address, signal, more = {}) {
  let response;
  try {
    response = await fetch(address, { signal, ...more, headers: { accept: "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}), ...more.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ detail: "The server cannot be reached. Is it still running?", status: 0 });
  }
  const body = await response.json().catch(() => ({ detail: `The server answered ${response.status} without saying why.` }));
  if (!response.ok) throw Object.assign(new Problem({ status: response.status, ...body }), { body });
  return body;
}

/** A file of the server. */
export async function text(address) {
  const response = await fetch(address, { headers: token ? { authorization: `Bearer ${token}` } : {} });
  if (!response.ok) throw new Problem({ status: response.status, detail: `The server answered ${response.status}.` });
  return response.text();
}

/** The runs that are served. */
export const runs = () => fetched("api/v1/runs");

/** The address of a question to a run. */
export function address(run, route, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null) query.set(name, value);
  }
  return `api/v1/${encodeURIComponent(run)}/${route}?${query}`;
}

/** Asks a run; `signal` takes the question back. */
export const ask = (run, route, parameters, signal) => fetched(address(run, route, parameters), signal);
